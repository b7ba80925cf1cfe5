#include "libra/cli/gpu_tensors.h"

#include <algorithm>
#include <vector>

#include "libra/base/bfloat16.h"
#include "libra/base/index.h"
#include "libra/base/rng.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/cuda_memory.h"

namespace libra::cli {
namespace {

constexpr std::int64_t kStretch = std::int64_t{1} << 20;

std::vector<Bf16> random_stretch() {
  std::vector<Bf16> values;
  values.reserve(at(kStretch));
  Rng rng(7);
  for (std::int64_t i = 0; i < kStretch; ++i) values.emplace_back(static_cast<float>(rng.normal()));
  return values;
}

}  // namespace

void fill_random(std::byte* memory, std::int64_t bytes) {
  static const std::vector<Bf16> values = random_stretch();
  std::int64_t done = std::min(2 * kStretch, bytes);
  check_cuda(cudaMemcpy(memory, values.data(), at(done), cudaMemcpyHostToDevice), "cudaMemcpy");
  while (done < bytes) {
    const std::int64_t more = std::min(done, bytes - done);
    check_cuda(cudaMemcpy(memory + done, memory, at(more), cudaMemcpyDeviceToDevice), "cudaMemcpy");
    done += more;
  }
  // Copies on the device are not awaited otherwise: what is measured next would run beside them.
  check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

GpuTensors::GpuTensors(std::int32_t device, std::int64_t rows, std::int32_t q_heads,
                       std::int32_t kv_heads, std::int32_t dim)
    : device_(device),
      rows_(rows),
      dim_(dim),
      q_(random(q_heads)),
      k_(random(kv_heads)),
      v_(random(kv_heads)),
      o_(random(q_heads)),
      lse_(make(DType::kFp32, q_heads, 1)),
      d_o_(random(q_heads)),
      dq_(make(DType::kBf16, q_heads, dim)),
      dk_(make(DType::kBf16, kv_heads, dim)),
      dv_(make(DType::kBf16, kv_heads, dim)) {}

GpuTensors::Tensor GpuTensors::make(DType dtype, std::int32_t heads, std::int32_t dim) const {
  const std::int64_t bytes = rows_ * heads * dim * element_bytes(dtype);
  Tensor tensor{allocate_device(device_, bytes), {}};
  if (bytes > 0) check_cuda(cudaMemset(tensor.memory.get(), 0, at(bytes)), "cudaMemset");
  check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");  // else it is overtaken
  tensor.view = {tensor.memory.get(), dtype, rows_, heads, dim, std::int64_t{heads} * dim, dim};
  return tensor;
}

GpuTensors::Tensor GpuTensors::random(std::int32_t heads) const {
  Tensor tensor = make(DType::kBf16, heads, dim_);
  fill_random(tensor.memory.get(), rows_ * heads * dim_ * element_bytes(DType::kBf16));
  return tensor;
}

ForwardTensors GpuTensors::forward(std::int64_t rows) const {
  return {q_.first(rows), k_.first(rows), v_.first(rows), o_.first(rows), lse_.first(rows)};
}

BackwardTensors GpuTensors::backward(std::int64_t rows) const {
  return {q_.first(rows),   k_.first(rows),  v_.first(rows),  o_.first(rows), lse_.first(rows),
          d_o_.first(rows), dq_.first(rows), dk_.first(rows), dv_.first(rows)};
}

BackwardTensors GpuTensors::accumulating() {
  if (dq_sum_.memory == nullptr) {
    dq_sum_ = make(DType::kFp32, q_.view.heads, dim_);
    dk_sum_ = make(DType::kFp32, k_.view.heads, dim_);
    dv_sum_ = make(DType::kFp32, k_.view.heads, dim_);
  }
  return {q_.view,   k_.view,      v_.view,      o_.view,     lse_.view,
          d_o_.view, dq_sum_.view, dk_sum_.view, dv_sum_.view};
}

}  // namespace libra::cli
