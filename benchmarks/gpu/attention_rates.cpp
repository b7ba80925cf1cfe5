// How fast the GPU backend computes attention, forward and backward, on random bf16 data of head
// dimension 128: JSON lines, one per measurement.
//
//   attention_rates                  the two cases of docs/results.md
//   attention_rates --table          also rates over block length and heads per call
//   attention_rates --elementwise    only what fill, convert and add reach, in GB/s
//
// TFLOP/s counts unmasked query-key pairs only: 4 * d * heads * pairs forward, 2.5 times that
// backward. Times are of whole calls, kernels around cuDNN's included: the median of the
// repetitions, and (slowest - fastest) / median. host_us is what the host takes to enqueue a call
// like earlier ones, as a layer's is. "backward, written": gradients in bf16 in place of sums.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libra/attention/cudnn/cudnn_attention.h"
#include "libra/base/bfloat16.h"
#include "libra/base/rng.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"

namespace libra {
namespace {

constexpr std::int32_t kDevice = 0;
constexpr std::int32_t kDim = 128;

struct Tensor {
  std::shared_ptr<std::byte> memory;
  TensorView view;
};

Tensor make_tensor(DType dtype, std::int64_t rows, std::int32_t heads, std::int32_t dim) {
  Tensor tensor;
  tensor.memory = allocate_device(kDevice, rows * heads * dim * element_bytes(dtype));
  tensor.view = {tensor.memory.get(), dtype, rows, heads, dim, std::int64_t{heads} * dim, dim};
  return tensor;
}

// Normal numbers, the same million of them again and again.
Tensor random_tensor(std::int64_t rows, std::int32_t heads, Rng& rng) {
  Tensor tensor = make_tensor(DType::kBf16, rows, heads, kDim);
  std::vector<Bf16> numbers(1 << 20);
  for (Bf16& number : numbers) number = Bf16(static_cast<float>(rng.normal()));
  const std::int64_t bytes = rows * heads * kDim * 2;
  const auto piece = static_cast<std::int64_t>(numbers.size() * sizeof(Bf16));
  for (std::int64_t done = 0; done < bytes; done += piece) {
    copy_memory(reinterpret_cast<const std::byte*>(numbers.data()), tensor.memory.get() + done,
                std::min(piece, bytes - done));
  }
  return tensor;
}

struct Tensors {
  Tensor q, k, v, o, lse, d_o, dq, dk, dv, written_dq, written_dk, written_dv;

  Tensors(std::int64_t rows, std::int32_t q_heads, std::int32_t kv_heads, Rng& rng)
      : q(random_tensor(rows, q_heads, rng)),
        k(random_tensor(rows, kv_heads, rng)),
        v(random_tensor(rows, kv_heads, rng)),
        o(make_tensor(DType::kBf16, rows, q_heads, kDim)),
        lse(make_tensor(DType::kFp32, rows, q_heads, 1)),
        d_o(random_tensor(rows, q_heads, rng)),
        dq(make_tensor(DType::kFp32, rows, q_heads, kDim)),
        dk(make_tensor(DType::kFp32, rows, kv_heads, kDim)),
        dv(make_tensor(DType::kFp32, rows, kv_heads, kDim)),
        written_dq(make_tensor(DType::kBf16, rows, q_heads, kDim)),
        written_dk(make_tensor(DType::kBf16, rows, kv_heads, kDim)),
        written_dv(make_tensor(DType::kBf16, rows, kv_heads, kDim)) {}

  ForwardTensors forward() const { return {q.view, k.view, v.view, o.view, lse.view}; }
  BackwardTensors backward() const {
    return {q.view, k.view, v.view, o.view, lse.view, d_o.view, dq.view, dk.view, dv.view};
  }
  BackwardTensors written() const {
    return {q.view,   k.view,          v.view,          o.view,         lse.view,
            d_o.view, written_dq.view, written_dk.view, written_dv.view};
  }
};

struct Work {
  std::string name;
  std::vector<Entry> forward, backward;
  std::int64_t rows = 0, pairs = 0;
  std::int32_t q_heads = 0, kv_heads = 0;
  bool keys_apart = false;  ///< no two entries share keys
};

struct Blocks {
  std::int64_t sample = 65536;
  std::int64_t block = 4096;
  bool every_second = false;
};

// A causal sample in blocks: backward gets each as a square and the rectangle before it. With
// every second block only, none has a neighbour that it could be merged with.
Work in_blocks(const Blocks& blocks, std::int32_t q_heads) {
  Work work;
  work.name = fmt::format("{}{} in blocks of {}", blocks.every_second ? "every second of " : "",
                          blocks.sample, blocks.block);
  work.rows = blocks.sample;
  work.q_heads = q_heads;
  work.kv_heads = std::max(q_heads / 4, 1);
  const std::int64_t step = blocks.every_second ? 2 * blocks.block : blocks.block;
  for (std::int64_t a = step - blocks.block; a < blocks.sample; a += step) {
    const std::int64_t e = a + blocks.block;
    work.pairs += (e * (e + 1) - a * (a + 1)) / 2;
    work.forward.push_back({a, blocks.block, 0, e, 0, 0, Mask::kBottomRightCausal});
    work.backward.push_back({a, blocks.block, a, blocks.block, 0, 0, Mask::kTopLeftCausal});
    if (a > 0) work.backward.push_back({a, blocks.block, 0, a, 0, 0, Mask::kFull});
  }
  return work;
}

Work samples(std::int64_t count, std::int64_t length, std::int32_t q_heads) {
  Work work{fmt::format("{} samples of {}", count, length),
            {},
            {},
            count * length,
            count * length * (length + 1) / 2,
            q_heads,
            std::max(q_heads / 4, 1),
            true};
  for (std::int64_t i = 0; i < count; ++i) {
    work.forward.push_back(
        {i * length, length, i * length, length, 0, 0, Mask::kBottomRightCausal});
    work.backward.push_back({i * length, length, i * length, length, 0, 0, Mask::kTopLeftCausal});
  }
  return work;
}

struct Measured {
  double ms = 0;
  double spread = 0;
  double host_us = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double time_ms(const std::function<void()>& enqueue, CudaStream& stream) {
  Timestamp before, after;
  stream.mark(&before);
  enqueue();
  stream.mark(&after);
  stream.synchronize();
  return static_cast<double>(after.wall_ns - before.wall_ns) * 1e-6;
}

// Of one call among several that are enqueued without a pause.
double time_host_us(const std::function<void()>& enqueue, CudaStream& stream, int repetitions) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repetitions; ++i) enqueue();
  const std::chrono::duration<double, std::micro> host = std::chrono::steady_clock::now() - start;
  stream.synchronize();
  return host.count() / repetitions;
}

Measured measure(const std::function<void()>& enqueue, CudaStream& stream, int repetitions) {
  enqueue();  // builds graphs, grows scratch memory
  stream.synchronize();
  std::vector<double> ms;
  for (int i = 0; i < repetitions; ++i) ms.push_back(time_ms(enqueue, stream));
  const auto [fastest, slowest] = std::minmax_element(ms.begin(), ms.end());
  const double middle = median(ms);
  return {middle, (*slowest - *fastest) / middle, time_host_us(enqueue, stream, repetitions)};
}

void print(const Work& work, const char* pass, const Measured& measured, double flops,
           const CudnnAttention& attention) {
  fmt::print(
      "{{\"case\": \"{}\", \"heads\": \"{}:{}\", \"pass\": \"{}\", \"ms\": {:.3f}, \"spread\": "
      "{:.3f}, \"tflops\": {:.1f}, \"host_us\": {:.0f}, \"graphs\": {}, \"scratch_mb\": {}}}\n",
      work.name, work.q_heads, work.kv_heads, pass, measured.ms, measured.spread,
      flops / measured.ms * 1e-9, measured.host_us, attention.graph_builds(),
      attention.scratch_bytes() >> 20);
  std::fflush(stdout);
}

void run(const Work& work, const CudnnOptions& options, int repetitions) {
  CudnnAttention attention(kDevice, options);
  CudaStream stream(kDevice);
  Rng rng(1);
  const Tensors tensors(work.rows, work.q_heads, work.kv_heads, rng);
  AttentionCall call;
  call.q_heads = work.q_heads;
  call.kv_heads = work.kv_heads;
  call.softmax_scale = 1.0 / std::sqrt(kDim);
  const double flops = 4.0 * kDim * work.q_heads * static_cast<double>(work.pairs);
  call.entries = work.forward;
  print(work, "forward",
        measure([&] { attention.forward(call, tensors.forward(), stream); }, stream, repetitions),
        flops, attention);
  call.entries = work.backward;
  print(work, "backward",
        measure([&] { attention.backward(call, tensors.backward(), stream); }, stream, repetitions),
        2.5 * flops, attention);
  call.gradients = Gradients::kWritten;
  if (!work.keys_apart || !attention.can_write(call, tensors.written())) return;
  print(work, "backward, written",
        measure([&] { attention.backward(call, tensors.written(), stream); }, stream, repetitions),
        2.5 * flops, attention);
}

// Bytes read and written, on 32 heads of 64K rows and on half of the heads.
void run_elementwise(int repetitions) {
  CudnnAttention attention(kDevice);
  CudaStream stream(kDevice);
  const Tensor sums = make_tensor(DType::kFp32, 65536, 32, kDim);
  const Tensor more = make_tensor(DType::kFp32, 65536, 32, kDim);
  const Tensor stored = make_tensor(DType::kBf16, 65536, 32, kDim);
  for (const std::int32_t heads : {32, 16}) {
    TensorView a = sums.view, b = more.view, c = stored.view;
    a.heads = b.heads = c.heads = heads;
    const double elements = 65536.0 * heads * kDim;
    const auto report = [&](const char* name, double bytes, const std::function<void()>& enqueue) {
      const Measured measured = measure(enqueue, stream, repetitions);
      fmt::print(
          "{{\"kernel\": \"{}\", \"heads\": {}, \"gb_per_s\": {:.0f}, \"spread\": {:.3f}}}\n", name,
          heads, bytes * elements / measured.ms * 1e-6, measured.spread);
    };
    report("fill fp32", 4, [&] { attention.fill(a, 0.0, stream); });
    report("convert fp32 to bf16", 6, [&] { attention.convert(a, c, stream); });
    report("add fp32", 12, [&] { attention.add(a, b, stream); });
  }
}

}  // namespace
}  // namespace libra

int main(int argc, char** argv) {
  using namespace libra;
  CLI::App app("Rates of attention on one GPU");
  bool table = false, elementwise = false;
  int repetitions = 5;
  CudnnOptions options;
  app.add_flag("--table", table, "also rates over block length and heads per call");
  app.add_flag("--elementwise", elementwise, "only fill, convert and add");
  app.add_flag("--deterministic", options.deterministic, "the same bits every time");
  app.add_option("--scratch-bytes", options.max_scratch_bytes, "bound of the scratch memory");
  app.add_option("--repetitions", repetitions, "timed calls of each kind");
  CLI11_PARSE(app, argc, argv);
  if (device_count() == 0) {
    fmt::print(stderr, "no GPU that this process can use\n");
    return 1;
  }
  fmt::print("{{\"device\": \"{}\"}}\n", device_name(kDevice));
  if (elementwise) {
    run_elementwise(repetitions);
    return 0;
  }
  run(in_blocks({65536, 4096}, 4), options, repetitions);
  run(samples(400, 644, 32), options, repetitions);
  if (!table) return 0;
  for (std::int64_t block = 512; block <= 32768; block *= 2) {
    for (std::int32_t heads = 1; heads <= 32; heads *= 2) {
      run(in_blocks({65536, block, true}, heads), options, repetitions);
    }
  }
  return 0;
}
