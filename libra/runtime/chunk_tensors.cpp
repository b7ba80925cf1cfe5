#include "libra/runtime/chunk_tensors.h"

#include "libra/runtime/tensor_views.h"

namespace libra {

TensorView ChunkTensors::q(std::byte* memory, const Region& region, std::int32_t chunk) const {
  return region_tensor(memory, region, chunk, heads_.chunk_heads, shape_.head_dim, stored_);
}

TensorView ChunkTensors::o(std::byte* memory, const Region& region, std::int32_t chunk) const {
  return region_tensor(memory, region, chunk, heads_.chunk_heads, shape_.value_dim, stored_);
}

TensorView ChunkTensors::lse(std::byte* memory, const Region& region, std::int32_t chunk) const {
  return region_tensor(memory, region, chunk, heads_.chunk_heads, 1, accumulated_);
}

TensorView ChunkTensors::dq_sum(std::byte* memory, const Region& region) const {
  return region_tensor(memory, region, 0, heads_.chunk_heads, shape_.head_dim, accumulated_);
}

TensorView ChunkTensors::k(std::byte* memory, const Region& region, std::int32_t kv_chunk) const {
  return region_tensor(memory, region, kv_chunk, heads_.kv_chunk_heads, shape_.head_dim, stored_);
}

TensorView ChunkTensors::v(std::byte* memory, const Region& region, std::int32_t kv_chunk) const {
  return region_tensor(memory, region, kv_chunk, heads_.kv_chunk_heads, shape_.value_dim, stored_);
}

TensorView ChunkTensors::dk_sum(std::byte* memory, const Region& region,
                                std::int32_t kv_chunk) const {
  return region_tensor(memory, region, kv_chunk, heads_.kv_chunk_heads, shape_.head_dim,
                       accumulated_);
}

TensorView ChunkTensors::dv_sum(std::byte* memory, const Region& region,
                                std::int32_t kv_chunk) const {
  return region_tensor(memory, region, kv_chunk, heads_.kv_chunk_heads, shape_.value_dim,
                       accumulated_);
}

}  // namespace libra
