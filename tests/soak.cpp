// soak [--steps N] [--seed S]: many training steps in one process, each with another window,
// layout, model and number of workers, some with an evaluation between forward and backward.
// Transports and streams stay, as they do in training. Every result is compared with plain
// attention; memory, open files and threads must stay as they are. Exits with 1 if anything is not
// so.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "libra/base/index.h"
#include "libra/runtime/random_pools.h"
#include "libra/runtime/worker_threads.h"
#include "libra/transport/inproc/transport.h"
#include "tests/layer_driver.h"
#include "tests/matrix_fraction.h"
#include "tests/seat.h"

namespace libra::testing {
namespace {

constexpr std::int64_t kMaxTokens = 80;

// The workers of one pool size, kept from step to step.
class Pool {
 public:
  explicit Pool(std::int32_t workers) : endpoints_(make_inproc_group(workers, {})) {
    seats_.reserve(endpoints_.size());
    for (const auto& endpoint : endpoints_) seats_.push_back(std::make_unique<Seat>(*endpoint));
  }

  // Arenas grow to what the largest plan so far needs, and stay.
  std::int64_t arena_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& endpoint : endpoints_) bytes += endpoint->arena_bytes();
    return bytes;
  }

  // What is wrong with the results; with an evaluation plan its forward pass comes between the two
  // of training.
  std::string step(const PoolPlan& plan, const PoolPlan* evaluation, std::uint64_t seed) {
    std::vector<std::string> wrong(endpoints_.size());
    const auto errors = on_every_worker(endpoints_, [&](Transport& transport) {
      Seat& seat = *seats_[at(transport.worker())];
      wrong[at(transport.worker())] = run(seat, plan, evaluation, seed);
      transport.take_records();
      seat.log.clear();
    });
    std::string all;
    for (const std::string& text : wrong) all += text;
    for (const std::string& text : errors) all += text;
    return all;
  }

 private:
  static std::string run(Seat& seat, const PoolPlan& plan, const PoolPlan* evaluation,
                         std::uint64_t seed) {
    const std::int32_t worker = seat.transport.worker();
    LayerDriver train(plan, worker, seed);
    std::optional<LayerDriver> evaluate;
    if (evaluation != nullptr) evaluate.emplace(*evaluation, worker, seed + 1);
    // Arenas grow with every stream idle: for both plans at once.
    const auto evaluated = evaluate ? seat.pipeliner(*evaluation) : nullptr;
    const auto trained = seat.pipeliner(plan);
    train.forward(*trained, seat.stream);
    if (evaluate) evaluate->forward(*evaluated, seat.stream);
    train.backward(*trained, seat.stream);
    seat.stream.synchronize();
    return train.wrong_in_forward() + train.wrong_in_backward() +
           (evaluate ? evaluate->wrong_in_forward() : "");
  }

  std::vector<std::unique_ptr<Transport>> endpoints_;
  std::vector<std::unique_ptr<Seat>> seats_;
};

constexpr std::array<std::int32_t, 5> kSizes = {2, 3, 4, 6, 8};

// Of as many workers, or of one of kSizes.
PoolPlan draw_plan(Rng& rng, std::optional<std::int32_t> workers) {
  for (;;) {
    PoolPlan plan = random_plan(rng.next(), kMaxTokens);
    const std::int32_t size = plan.workers();
    if (workers ? size == *workers : std::find(kSizes.begin(), kSizes.end(), size) != kSizes.end())
      return plan;
  }
}

std::ptrdiff_t entries(const char* folder) {
  std::error_code ignored;
  const std::filesystem::directory_iterator begin(folder, ignored);
  return std::distance(begin, std::filesystem::directory_iterator());
}

struct Usage {
  std::int64_t resident_kb = 0;
  std::int64_t heap_kb = 0;  // what the program holds besides arenas; none under a sanitizer
  std::ptrdiff_t files = 0, threads = 0;
};

// Chunks that threads keep for themselves count as held: run it with
// GLIBC_TUNABLES=glibc.malloc.tcache_count=0, so that there are none.
Usage usage(std::int64_t arena_bytes) {
  std::int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  constexpr std::int64_t kPageKb = 4;
  const struct mallinfo2 heap = mallinfo2();
  const auto held = static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
  return {resident * kPageKb, (held - arena_bytes) / 1024, entries("/proc/self/fd"),
          entries("/proc/self/task")};
}

void print(std::int64_t step, const Usage& used, std::int64_t evaluations) {
  fmt::print("step {:>6}: resident {:>7} kB, heap {:>6} kB, {} files, {} threads, {} evaluations\n",
             step, used.resident_kb, used.heap_kb, used.files, used.threads, evaluations);
  std::fflush(stdout);
}

class Soak {
 public:
  /// All pools are there from the beginning: what comes later is growth.
  Soak(std::uint64_t seed, std::int64_t steps) : rng_(seed, 5), steps_(steps) {
    for (const std::int32_t size : kSizes) pools_.emplace(size, std::make_unique<Pool>(size));
  }

  bool run() {
    const std::int64_t warm = std::max<std::int64_t>(1, steps_ / 10);
    for (std::int64_t step = 1; step <= steps_; ++step) {
      const std::string wrong = next(step);
      if (!wrong.empty()) {
        fmt::print("step {}: {}\n", step, wrong);
        return false;
      }
      if (step == warm) warm_ = usage(arena_bytes());
      if (step % warm == 0) print(step, usage(arena_bytes()), evaluations_);
    }
    return is_flat();
  }

 private:
  std::string next(std::int64_t step) {
    const PoolPlan plan = draw_plan(rng_, std::nullopt);
    const bool evaluates = rng_.below(4) == 0;
    const PoolPlan evaluation = evaluates ? draw_plan(rng_, plan.workers()) : PoolPlan{};
    evaluations_ += evaluates ? 1 : 0;
    return pools_.at(plan.workers())
        ->step(plan, evaluates ? &evaluation : nullptr, static_cast<std::uint64_t>(step));
  }

  std::int64_t arena_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& [workers, pool] : pools_) bytes += pool->arena_bytes();
    return bytes;
  }

  // Arenas may still grow a little after the first tenth; what leaks grows with every step.
  bool is_flat() const {
    constexpr std::int64_t kHeapSlackKb = 1024;
    constexpr std::int64_t kResidentSlackKb = 16 * 1024;
    const Usage now = usage(arena_bytes());
    const bool flat = now.heap_kb <= warm_.heap_kb + kHeapSlackKb &&
                      now.resident_kb <= warm_.resident_kb + kResidentSlackKb &&
                      now.files == warm_.files && now.threads == warm_.threads;
    fmt::print("{} steps, all results right; {}\n", steps_, flat ? "flat" : "NOT FLAT");
    return flat;
  }

  Rng rng_;
  std::int64_t steps_;
  std::int64_t evaluations_ = 0;
  std::map<std::int32_t, std::unique_ptr<Pool>> pools_;
  Usage warm_;
};

}  // namespace
}  // namespace libra::testing

int main(int argc, char** argv) {
  CLI::App app("Many steps in one process");
  std::int64_t steps = 10'000;
  std::uint64_t seed = std::random_device{}();
  app.add_option("--steps", steps, "Steps")->capture_default_str();
  app.add_option("--seed", seed, "Drawn if not given");
  CLI11_PARSE(app, argc, argv);
  steps = libra::testing::fraction_of(steps);
  fmt::print("soak --steps {} --seed {}\n", steps, seed);
  return libra::testing::Soak(seed, steps).run() ? 0 : 1;
}
