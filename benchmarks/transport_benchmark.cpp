// Latency and bandwidth of exchanges between in-process workers: each of two workers sends one
// block to the other, waits for it on its stream, and synchronises.
//
//   transport_benchmark --benchmark_format=json --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "libra/base/task_queue.h"
#include "libra/transport/inproc/transport.h"

namespace libra {
namespace {

struct Endpoint {
  std::vector<std::byte> out;
  std::vector<std::byte> in;
  TaskQueue stream;
};

/// Blocks of rows of 256 bytes (a head of 128 bf16), which lie `stride` bytes apart.
void exchange(benchmark::State& state, std::int64_t stride) {
  constexpr std::int64_t kRowBytes = 256;
  const std::int64_t rows = state.range(0) / kRowBytes;
  auto group = make_inproc_group(2);
  std::vector<Endpoint> ends(2);
  for (Endpoint& end : ends) {
    end.out.resize(static_cast<std::size_t>(rows * stride));
    end.in.resize(end.out.size());
  }
  Tag tag;
  for (auto _ : state) {
    ++tag.step;
    for (std::int32_t worker = 0; worker < 2; ++worker) {
      Transport& transport = *group[static_cast<std::size_t>(worker)];
      Endpoint& end = ends[static_cast<std::size_t>(worker)];
      const std::int32_t peer = 1 - worker;
      const StridedView out{end.out.data(), rows, kRowBytes, stride};
      const StridedView in{end.in.data(), rows, kRowBytes, stride};
      transport.wait(transport.post({.tag = tag,
                                     .sends = {{.peer = peer, .local = out}},
                                     .receives = {{.peer = peer, .local = in}}},
                                    end.stream),
                     end.stream);
    }
    for (Endpoint& end : ends) end.stream.synchronize();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));  // in each direction
}

void contiguous(benchmark::State& state) { exchange(state, 256); }
void strided(benchmark::State& state) { exchange(state, 8 * 256); }

BENCHMARK(contiguous)->Arg(256)->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20)->UseRealTime();
BENCHMARK(strided)->Arg(1 << 20)->UseRealTime();

}  // namespace
}  // namespace libra

BENCHMARK_MAIN();
