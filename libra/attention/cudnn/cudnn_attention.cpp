#include "libra/attention/cudnn/cudnn_attention.h"

#include <fmt/format.h>

#include <cstdint>

#include "libra/attention/argument_checks.h"
#include "libra/attention/cudnn/attention_pass.h"
#include "libra/attention/cudnn/elementwise.h"
#include "libra/base/error.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"

namespace libra {
namespace {

constexpr std::int64_t kVectorBytes = 16;

const SupportedDTypes& storage_types() {
  static const SupportedDTypes result = {"attention on GPUs", {DType::kBf16, DType::kFp16}};
  return result;
}

const SupportedDTypes& element_types() {
  static const SupportedDTypes result = {"attention on GPUs",
                                         {DType::kFp32, DType::kBf16, DType::kFp16}};
  return result;
}

void check_dim(std::string_view name, std::int32_t dim) {
  if (dim >= 64 && dim <= 256 && dim % 16 == 0) return;
  throw ConfigError(
      fmt::format("{} has dim {}: attention on GPUs supports 64 to 256 in steps of 16", name, dim));
}

// Elements between places where rows and heads may begin.
std::int64_t vector_of(DType dtype) { return kVectorBytes / element_bytes(dtype); }

bool is_aligned(const TensorView& tensor) {
  const std::int64_t step = vector_of(tensor.dtype);
  return reinterpret_cast<std::uintptr_t>(tensor.data) % kVectorBytes == 0 &&
         tensor.row_stride % step == 0 && tensor.head_stride % step == 0;
}

void check_alignment(std::string_view name, const TensorView& tensor) {
  if (is_aligned(tensor)) return;
  throw ConfigError(
      fmt::format("{} has strides {} and {} from {}: every row and head must begin on "
                  "{} bytes, {} elements",
                  name, tensor.row_stride, tensor.head_stride, tensor.data, kVectorBytes,
                  vector_of(tensor.dtype)));
}

void check_supported(const ForwardTensors& t) {
  check_dim("q", t.q.dim);
  check_dim("v", t.v.dim);
  check_alignment("q", t.q);
  check_alignment("k", t.k);
  check_alignment("v", t.v);
  check_alignment("o", t.o);
}

void check_supported(const BackwardTensors& t) {
  check_supported(ForwardTensors{t.q, t.k, t.v, t.o, t.lse});
  check_alignment("dO", t.d_o);
  check_alignment("dq", t.dq);
  check_alignment("dk", t.dk);
  check_alignment("dv", t.dv);
}

void check_formats(const TensorView& from, const TensorView& to) {
  check_dtype("the source", from.dtype, element_types());
  check_dtype("the destination", to.dtype, element_types());
}

std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

}  // namespace

struct CudnnAttention::Impl {
  Impl(std::int32_t device_id, const CudnnOptions& given)
      : device(device_id),
        options(given),
        graphs(cudnn::DeviceGraphs::of(device_id)),
        passes(device_id),
        scratch(device_id) {
    const DeviceGuard guard(device_id);
    cudnn::load_kernels();
    cudnn::load_elementwise_kernels();
  }

  // The CUDA stream of work for this device.
  CudaStream& on_device(Stream& stream) const {
    CudaStream& cuda = as_cuda(stream);
    if (cuda.device() == device) return cuda;
    throw ConfigError(fmt::format(
        "the stream belongs to device {}: this backend works on device {}", cuda.device(), device));
  }

  cudnn::Workplace workplace(cudaStream_t stream) {
    return {graphs, passes, scratch, stream, pass_options()};
  }

  cudnn::PassOptions pass_options() const {
    return {options.max_scratch_bytes, options.deterministic};
  }

  std::int32_t device;
  CudnnOptions options;
  cudnn::DeviceGraphs& graphs;
  cudnn::PreparedPasses passes;
  cudnn::Scratch scratch;  // goes first, since it waits for the last call
};

CudnnAttention::CudnnAttention(std::int32_t device, const CudnnOptions& options)
    : impl_(std::make_unique<Impl>(device, options)) {}

CudnnAttention::~CudnnAttention() = default;

void CudnnAttention::forward(const AttentionCall& call, const ForwardTensors& tensors,
                             Stream& stream) {
  CudaStream& cuda = impl_->on_device(stream);
  check_forward(call, tensors, storage_types());
  check_supported(tensors);
  const DeviceGuard guard(impl_->device);
  cudnn::AttentionPass(call, tensors, impl_->workplace(cuda.get())).run();
}

void CudnnAttention::backward(const AttentionCall& call, const BackwardTensors& tensors,
                              Stream& stream) {
  CudaStream& cuda = impl_->on_device(stream);
  check_backward(call, tensors, storage_types());
  check_supported(tensors);
  const DeviceGuard guard(impl_->device);
  cudnn::AttentionPass(call, tensors, impl_->workplace(cuda.get())).run();
}

bool CudnnAttention::can_write(const AttentionCall& call, const BackwardTensors& tensors) {
  if (!is_aligned(tensors.dq) || !is_aligned(tensors.dk) || !is_aligned(tensors.dv)) return false;
  AttentionCall written = call;
  written.gradients = Gradients::kWritten;
  check_backward(written, tensors, storage_types());
  return cudnn::can_write(
      cudnn::key_of(cudnn::Pass::kBackward, written, cudnn::tensors_of(call, tensors)),
      impl_->pass_options());
}

void CudnnAttention::prepare(const AttentionCall& call, const ForwardTensors& tensors,
                             Stream& stream) {
  CudaStream& cuda = impl_->on_device(stream);
  check_forward(call, tensors, storage_types());
  check_supported(tensors);
  const DeviceGuard guard(impl_->device);
  cudnn::AttentionPass(call, tensors, impl_->workplace(cuda.get())).rehearse();
}

void CudnnAttention::prepare(const AttentionCall& call, const BackwardTensors& tensors,
                             Stream& stream) {
  CudaStream& cuda = impl_->on_device(stream);
  check_backward(call, tensors, storage_types());
  check_supported(tensors);
  const DeviceGuard guard(impl_->device);
  cudnn::AttentionPass(call, tensors, impl_->workplace(cuda.get())).rehearse();
}

void CudnnAttention::copy(StridedView from, StridedView to, Stream& stream) {
  CudaStream& cuda = impl_->on_device(stream);
  check_copy(from, to);
  if (from.bytes() == 0) return;
  const DeviceGuard guard(impl_->device);
  if (from.stride_bytes == from.row_bytes && to.stride_bytes == to.row_bytes) {
    check_cuda(
        cudaMemcpyAsync(to.data, from.data, size(from.bytes()), cudaMemcpyDefault, cuda.get()),
        "cudaMemcpyAsync");
    return;
  }
  check_cuda(
      cudaMemcpy2DAsync(to.data, size(to.stride_bytes), from.data, size(from.stride_bytes),
                        size(from.row_bytes), size(from.rows), cudaMemcpyDefault, cuda.get()),
      "cudaMemcpy2DAsync");
}

void CudnnAttention::fill(const TensorView& tensor, double value, Stream& stream) {
  CudaStream& cuda = impl_->on_device(stream);
  check_dtype("the tensor", tensor.dtype, element_types());
  const DeviceGuard guard(impl_->device);
  cudnn::fill(tensor, value, cuda.get());
}

void CudnnAttention::add(const TensorView& from, const TensorView& to, Stream& stream) {
  CudaStream& cuda = impl_->on_device(stream);
  check_formats(from, to);
  check_add(from, to);
  const DeviceGuard guard(impl_->device);
  cudnn::add(from, to, cuda.get());
}

void CudnnAttention::convert(const TensorView& from, const TensorView& to, Stream& stream) {
  CudaStream& cuda = impl_->on_device(stream);
  check_formats(from, to);
  check_same_shape(from, to);
  const DeviceGuard guard(impl_->device);
  cudnn::convert(from, to, cuda.get());
}

void CudnnAttention::poison_on_failure(const TensorView& tensor, Stream& stream) {
  CudaStream& cuda = impl_->on_device(stream);
  check_dtype("the tensor", tensor.dtype, element_types());
  const DeviceGuard guard(impl_->device);
  cudnn::poison_if(cuda.failure()->flag(), tensor, cuda.get());
}

void CudnnAttention::warm_up(const AttentionCall& call, const ForwardTensors& tensors,
                             std::int64_t max_rows) {
  check_forward(call, tensors, storage_types());
  check_supported(tensors);
  cudnn::build_graphs(cudnn::key_of(cudnn::Pass::kForward, call, cudnn::tensors_of(call, tensors)),
                      impl_->pass_options(), max_rows, impl_->graphs);
}

void CudnnAttention::warm_up(const AttentionCall& call, const BackwardTensors& tensors,
                             std::int64_t max_rows) {
  check_backward(call, tensors, storage_types());
  check_supported(tensors);
  cudnn::build_graphs(cudnn::key_of(cudnn::Pass::kBackward, call, cudnn::tensors_of(call, tensors)),
                      impl_->pass_options(), max_rows, impl_->graphs);
}

std::int64_t CudnnAttention::graph_builds() const { return impl_->graphs.builds(); }
std::int64_t CudnnAttention::preparations() const { return impl_->passes.preparations(); }
std::int64_t CudnnAttention::scratch_allocations() const { return impl_->scratch.allocations(); }
std::int64_t CudnnAttention::scratch_bytes() const { return impl_->scratch.bytes(); }

}  // namespace libra
