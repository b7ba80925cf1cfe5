#include "libra/transport/nccl/staging.h"

#include <algorithm>

#include "libra/cuda/cuda_error.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/strided_copy.h"

namespace libra::nccl {
namespace {

constexpr std::int64_t kAlignment = 256;

bool contiguous(const StridedView& view) {
  return view.rows <= 1 || view.stride_bytes == view.row_bytes;
}

// NCCL reads and writes device memory; a few transfers lie on the host.
bool on_device(const std::byte* data) {
  cudaPointerAttributes attributes{};
  check_cuda(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes");
  return attributes.type == cudaMemoryTypeDevice;
}

}  // namespace

std::vector<Block> Staging::blocks_of(const std::vector<const Transfer*>& transfers,
                                      cudaStream_t stream) {
  std::vector<Block> blocks;
  for (const Transfer* transfer : transfers) {
    if (transfer->local.bytes() == 0) continue;
    auto block = std::find_if(blocks.begin(), blocks.end(),
                              [&](const Block& b) { return b.peer == transfer->peer; });
    if (block == blocks.end()) block = blocks.insert(blocks.end(), {transfer->peer, 0, {}, {}});
    block->bytes += transfer->local.bytes();
    block->rows.push_back(transfer->local);
  }
  for (Block& block : blocks) {
    const StridedView& first = block.rows.front();
    if (block.rows.size() > 1 || !contiguous(first) || !on_device(first.data)) continue;
    block.data = first.data;
    block.rows.clear();
  }
  place(blocks, stream);
  return blocks;
}

void Staging::place(std::vector<Block>& blocks, cudaStream_t stream) {
  std::int64_t needed = 0;
  for (const Block& block : blocks) {
    if (block.data == nullptr) needed += (block.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (needed > bytes_) {
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    memory_.reset();
    bytes_ = 0;
    memory_ = allocate_device(device_, needed);
    bytes_ = needed;
  }
  std::int64_t offset = 0;
  for (Block& block : blocks) {
    if (block.data != nullptr) continue;
    block.data = memory_.get() + offset;
    offset += (block.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
}

void pack(const Block& block, cudaStream_t stream) {
  std::byte* to = block.data;
  for (const StridedView& rows : block.rows) {
    enqueue_copy(rows, {to, 1, rows.bytes(), rows.bytes()}, stream);
    to += rows.bytes();
  }
}

void unpack(const Block& block, cudaStream_t stream) {
  std::byte* from = block.data;
  for (const StridedView& rows : block.rows) {
    enqueue_copy({from, 1, rows.bytes(), rows.bytes()}, rows, stream);
    from += rows.bytes();
  }
}

}  // namespace libra::nccl
