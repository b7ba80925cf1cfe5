// The passes that a backend has prepared, their tables on the device: what a layer does is prepared
// once and enqueued for every layer.
//
// Room for tables is bounded. When it is used up, all passes are forgotten; what is still wanted is
// prepared again.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "libra/attention/cudnn/prepared_pass.h"
#include "libra/attention/cudnn/stream_memory.h"

namespace libra::cudnn {

struct KeptPass {
  PreparedPass pass;  ///< without its tables
  const std::byte* tables = nullptr;
};

class PreparedPasses {
 public:
  explicit PreparedPasses(std::int32_t device);

  /// Null if it is not there.
  const KeptPass* find(const PassKey& key) const;

  /// Sends the tables. `stream` must be behind all work that uses passes kept here. Other passes'
  /// addresses may become invalid.
  const KeptPass& keep(const PassKey& key, PreparedPass pass, cudaStream_t stream);

  /// Passes prepared since the backend was made.
  std::int64_t preparations() const { return preparations_; }

 private:
  StreamMemory memory_;
  std::int64_t used_ = 0;  // bytes
  std::unordered_map<PassKey, KeptPass, PassKeyHash> passes_;
  std::int64_t preparations_ = 0;
};

}  // namespace libra::cudnn
