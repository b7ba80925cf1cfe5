// Contiguous memory that an exchange's rows are packed into, a block per peer. Private to this
// folder.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libra/transport/transport.h"

namespace libra::nccl {

/// All that goes to one peer, or comes from it.
struct Block {
  std::int32_t peer = 0;
  std::int64_t bytes = 0;
  std::byte* data = nullptr;
  std::vector<StridedView> rows;  ///< to be packed or unpacked; empty if data is the caller's own
};

class Staging {
 public:
  explicit Staging(std::int32_t device) : device_(device) {}

  /// The transfers by peer, in list order, with staging memory for those that are not contiguous
  /// already. Blocks of an earlier call are void. Grows only after `stream` has been waited for.
  std::vector<Block> blocks_of(const std::vector<const Transfer*>& transfers, cudaStream_t stream);

 private:
  void place(std::vector<Block>& blocks, cudaStream_t stream);

  std::int32_t device_;
  std::shared_ptr<std::byte> memory_;
  std::int64_t bytes_ = 0;
};

void pack(const Block& block, cudaStream_t stream);
void unpack(const Block& block, cudaStream_t stream);

}  // namespace libra::nccl
