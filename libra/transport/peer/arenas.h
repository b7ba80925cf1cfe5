// The arenas of a pool's processes: the own one, and those of the others as they are seen here.
// Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libra/transport/peer/control_block.h"

namespace libra::peer {

class Arenas {
 public:
  Arenas(ControlBlock& control, std::int32_t worker, std::int32_t device);
  ~Arenas();
  Arenas(const Arenas&) = delete;
  Arenas& operator=(const Arenas&) = delete;

  /// Grows the own arena; every worker calls it with the same bytes, and waits for all.
  void reserve(std::int64_t bytes);

  std::byte* own() const { return own_.get(); }
  std::int64_t bytes() const { return bytes_; }
  bool holds(const StridedView& view) const;

  /// `bytes` at `offset` of the peer's arena, contiguous. Throws ConfigError beyond its end.
  StridedView at_peer(std::int32_t peer, std::int64_t offset, std::int64_t bytes) const;

  /// Lets go of the others' arenas, so that they may be freed.
  void close_others();

 private:
  struct Other {
    std::byte* memory = nullptr;
    bool imported = false;
  };
  void publish();
  void open_others();

  ControlBlock& control_;
  std::int32_t worker_;
  std::int32_t device_;
  std::shared_ptr<std::byte> own_;
  std::int64_t bytes_ = 0;
  std::vector<Other> others_;  // by worker
};

}  // namespace libra::peer
