// Speed of the CPU attention backend on one causal sample of 2048 tokens, 8 query and 2 KV heads of
// 64: GFLOP/s forward and backward by storage type. Counted as the plan counts: 4 d FLOPs a visible
// (query, key, head), 2.5 times that backward.
// Rates are per second of the CPU time that the process took.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/rng.h"
#include "libra/base/task_queue.h"

namespace libra {
namespace {

constexpr std::int64_t kTokens = 2048;
constexpr std::int32_t kQHeads = 8;
constexpr std::int32_t kKvHeads = 2;
constexpr std::int32_t kDim = 64;
constexpr double kForwardFlops = 4.0 * kDim * kQHeads * (kTokens * (kTokens + 1) / 2);

struct Tensor {
  Tensor(DType dtype, std::int32_t heads, std::int32_t dim)
      : memory(static_cast<std::size_t>(kTokens * heads * dim * element_bytes(dtype))),
        view{memory.data(), dtype, kTokens, heads, dim, std::int64_t{heads} * dim, dim} {}

  std::vector<std::byte> memory;
  TensorView view;
};

class Sample {
 public:
  explicit Sample(DType dtype)
      : q_(dtype, kQHeads, kDim),
        k_(dtype, kKvHeads, kDim),
        v_(dtype, kKvHeads, kDim),
        o_(dtype, kQHeads, kDim),
        d_o_(dtype, kQHeads, kDim),
        lse_(accumulation_dtype(dtype), kQHeads, 1),
        dq_(accumulation_dtype(dtype), kQHeads, kDim),
        dk_(accumulation_dtype(dtype), kKvHeads, kDim),
        dv_(accumulation_dtype(dtype), kKvHeads, kDim) {
    for (Tensor* tensor : {&q_, &k_, &v_, &d_o_}) randomize(*tensor);
    call_.entries = {{0, kTokens, 0, kTokens, 0, 0, Mask::kTopLeftCausal}};
    call_.q_heads = kQHeads;
    call_.kv_heads = kKvHeads;
    call_.softmax_scale = 0.125;
  }

  void forward() {
    attention_.forward(call_, {q_.view, k_.view, v_.view, o_.view, lse_.view}, queue_);
    queue_.synchronize();
  }

  void backward() {
    attention_.backward(
        call_,
        {q_.view, k_.view, v_.view, o_.view, lse_.view, d_o_.view, dq_.view, dk_.view, dv_.view},
        queue_);
    queue_.synchronize();
  }

 private:
  void randomize(Tensor& tensor) {
    std::vector<double> values(static_cast<std::size_t>(kTokens * tensor.view.heads * kDim));
    for (double& value : values) value = rng_.normal();
    TensorView source = tensor.view;
    source.data = values.data();
    source.dtype = DType::kFp64;
    attention_.convert(source, tensor.view, queue_);
    queue_.synchronize();
  }

  Rng rng_{1};
  AttentionCall call_;
  Tensor q_, k_, v_, o_, d_o_, lse_, dq_, dk_, dv_;
  ReferenceAttention attention_;
  TaskQueue queue_;
};

void report(benchmark::State& state, double flops_per_iteration) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops_per_iteration * 1e-9 * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void attention_forward(benchmark::State& state, DType dtype) {
  Sample sample(dtype);
  for ([[maybe_unused]] auto _ : state) sample.forward();
  report(state, kForwardFlops);
}

void attention_backward(benchmark::State& state, DType dtype) {
  Sample sample(dtype);
  sample.forward();
  for ([[maybe_unused]] auto _ : state) sample.backward();
  report(state, 2.5 * kForwardFlops);
}

BENCHMARK_CAPTURE(attention_forward, fp64, DType::kFp64)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(attention_forward, fp32, DType::kFp32)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(attention_forward, bf16, DType::kBf16)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(attention_backward, fp64, DType::kFp64)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(attention_backward, fp32, DType::kFp32)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(attention_backward, bf16, DType::kBf16)->MeasureProcessCPUTime();

}  // namespace
}  // namespace libra

BENCHMARK_MAIN();
