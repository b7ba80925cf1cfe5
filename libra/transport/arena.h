// Memory of a host transport's arena: 256-byte aligned, grown on demand, never shrunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace libra {

class Arena {
 public:
  static constexpr std::size_t kAlignment = 256;

  /// At least `bytes`; contents are lost if it has to grow, nothing happens if it has not.
  void reserve(std::int64_t bytes) {
    if (bytes <= bytes_) return;
    memory_.reset();
    bytes_ = 0;
    memory_.reset(static_cast<std::byte*>(
        ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{kAlignment})));
    bytes_ = bytes;
  }

  std::byte* data() const { return memory_.get(); }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete (memory, std::align_val_t{kAlignment});
    }
  };

  std::unique_ptr<std::byte, Free> memory_;
  std::int64_t bytes_ = 0;
};

}  // namespace libra
