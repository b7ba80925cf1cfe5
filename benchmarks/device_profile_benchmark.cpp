// Time of one prediction: a planner makes about ten thousand of them per plan.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libra/base/rng.h"
#include "libra/cost/device_profile.h"

namespace libra {
namespace {

std::vector<TokenRange> random_pieces() {
  Rng rng(1);
  std::vector<TokenRange> pieces(4096);
  for (TokenRange& piece : pieces) {
    piece.end = static_cast<std::int64_t>(1 + rng.below(1 << 18));
    piece.begin = piece.end > 4096 ? piece.end - 4096 : 0;
  }
  return pieces;
}

template <std::int64_t (DeviceProfile::*predict)(TokenRange, std::int32_t) const>
void predict_entry(benchmark::State& state) {
  const DeviceProfile profile = find_device_profile("h200");
  const std::vector<TokenRange> pieces = random_pieces();
  const auto heads = static_cast<std::int32_t>(state.range(0));
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize((profile.*predict)(pieces[next], heads));
    next = (next + 1) % pieces.size();
  }
}

BENCHMARK(predict_entry<&DeviceProfile::forward_ps>)->Name("forward_ps/heads")->Arg(4)->Arg(12);
BENCHMARK(predict_entry<&DeviceProfile::backward_ps>)->Name("backward_ps/heads")->Arg(4)->Arg(12);

}  // namespace
}  // namespace libra

BENCHMARK_MAIN();
