#include "libra/sim/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/units.h"
#include "libra/sim/evenness.h"
#include "libra/sim/parallel.h"
#include "libra/sim/spread.h"
#include "libra/sim/window_figures.h"

namespace libra {
namespace {

using Windows = std::vector<std::vector<PackedSequence>>;

constexpr std::size_t kFirstWindows = 3;  // of the first two rounds
constexpr std::size_t kSecondRound = 6;   // candidates at least whose surroundings are searched
constexpr std::size_t kThirdRound = 8;    // candidates at least that see all windows
constexpr std::int32_t kMostWorkers = 1024;

bool legal(const Scenario& scenario) {
  try {
    check_scenario(scenario);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

std::vector<PoolEvenness> evenness_of(const Scenario& scenario, const Windows& windows) {
  std::vector<PoolEvenness> evenness;
  for (std::int32_t pool = 1; pool <= scenario.gbs; ++pool) {
    if (scenario.gbs % pool != 0) continue;
    evenness.push_back({pool, mean_r_minus_1(windows, pool, Grouping::kVrsp)});
  }
  return evenness;
}

std::vector<double> unevenness_of(const Windows& windows) {
  std::vector<double> ratios;
  ratios.reserve(windows.size());
  for (const auto& window : windows) ratios.push_back(heaviest_over_mean(window));
  return ratios;
}

std::vector<std::size_t> numbers_below(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

// P up to the first that makes pools even, and the next.
std::vector<std::int32_t> pool_sizes(const Scenario& scenario,
                                     const std::vector<PoolEvenness>& evenness) {
  std::vector<std::int32_t> sizes;
  bool even = false;
  for (const PoolEvenness& p : evenness) {
    if (scenario.dp % p.pool != 0 || p.pool * scenario.plan.cp > kMostWorkers) continue;
    sizes.push_back(p.pool);
    if (even) break;
    even = p.r_minus_1 <= kEvenPools;
  }
  return sizes;
}

void add_if_new(std::vector<Candidate>& candidates, const Scenario& scenario,
                const Candidate& candidate) {
  if (std::find(candidates.begin(), candidates.end(), candidate) != candidates.end()) return;
  if (legal(with_candidate(scenario, candidate))) candidates.push_back(candidate);
}

std::vector<Candidate> first_round(const Scenario& scenario,
                                   const std::vector<std::int32_t>& pools) {
  const std::int64_t share = scenario.seq_tokens * scenario.plan.tp / scenario.plan.cp;
  std::vector<Candidate> candidates;
  for (const std::int32_t pool : pools) {
    for (const std::int32_t shards : {1, 2, 4, 8}) {
      for (const std::int64_t block : {2048, 4096, 8192, 16384, 32768}) {
        Candidate candidate;
        candidate.pool = pool;
        candidate.head_shards = shards;
        candidate.block_tokens = std::min(block, share);
        if (scenario.plan.shape.q_heads % shards != 0) continue;
        candidate.chunks = largest_legal_chunks(scenario.plan.shape, shards, candidate.chunks);
        add_if_new(candidates, scenario, candidate);
      }
    }
  }
  if (candidates.empty()) {
    throw ConfigError(fmt::format(
        "nothing to choose from: no B up to a worker's share of {} tokens and no H of 1, 2, 4, 8 "
        "is legal here: use longer sequences or a smaller CP or TP",
        share));
  }
  return candidates;
}

// The `count` best, and the best of each other P: few windows cannot say which P is best on all.
std::vector<Candidate> worth_more(const std::vector<Verdict>& verdicts, std::size_t count) {
  std::vector<Candidate> candidates;
  std::set<std::int32_t> pools;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const Candidate& candidate = verdicts[i].candidate;
    const bool new_pool = pools.insert(candidate.pool).second;
    if (i < count || new_pool) candidates.push_back(candidate);
  }
  return candidates;
}

// tau, M, placer and home layout of these, all combinations.
std::vector<Candidate> around(const Scenario& scenario, const std::vector<Candidate>& centres) {
  std::vector<Candidate> candidates;
  for (const Candidate& centre : centres) {
    for (const std::int32_t tau_ppm : {10'000, 30'000, 100'000}) {
      for (const std::int32_t chunks : {1, 2, 4, 8}) {
        for (const PlacerKind placer : {PlacerKind::kBalanced, PlacerKind::kPaper}) {
          for (const HomeKind home : {HomeKind::kContiguous, HomeKind::kZigzagRow}) {
            Candidate candidate = centre;
            candidate.tau_ppm = tau_ppm;
            candidate.chunks = chunks;
            candidate.placer = placer;
            candidate.home = home;
            add_if_new(candidates, scenario, candidate);
          }
        }
      }
    }
  }
  return candidates;
}

/// One candidate over some windows.
struct Trial {
  Candidate candidate;
  std::optional<Environment> environment;
  std::vector<WindowFigures> windows;
};

class Tuner {
 public:
  Tuner(const Scenario& scenario, const Windows& windows, const TuneOptions& options)
      : scenario_(scenario),
        windows_(windows),
        options_(options),
        device_(load_device_profile(scenario.cluster.device_profile)),
        cap_bytes_(options.memory_cap_bytes > 0 ? options.memory_cap_bytes
                                                : scenario.cluster.memory_gb * 1e9) {}

  TuneResult run() {
    result_.cap_bytes = cap_bytes_;
    const std::vector<double> unevenness = unevenness_of(windows_);
    result_.heaviest_over_mean = mean(unevenness);
    result_.evenness = evenness_of(scenario_, windows_);
    for (const PoolEvenness& p : result_.evenness) {
      if (result_.needed_pool == 0 && p.r_minus_1 <= options_.wanted_r_minus_1) {
        result_.needed_pool = p.pool;
      }
    }
    const std::vector<std::size_t> few = spread_out(unevenness, kFirstWindows);
    const std::vector<Verdict> first = simulate(first_round(scenario_, pools()), few);
    const std::vector<Verdict> second =
        simulate(around(scenario_, worth_more(first, kSecondRound)), few);
    const std::vector<Candidate> last = worth_more(second, kThirdRound);
    result_.ranked = simulate(last, numbers_below(windows_.size()));
    compare();
    return std::move(result_);
  }

 private:
  std::vector<std::int32_t> pools() const { return pool_sizes(scenario_, result_.evenness); }

  // Verdicts under the cap, fastest first, on these windows.
  std::vector<Verdict> simulate(const std::vector<Candidate>& candidates,
                                const std::vector<std::size_t>& windows) {
    std::vector<Trial> trials(candidates.size());
    for (std::size_t i = 0; i < trials.size(); ++i) {
      trials[i].candidate = candidates[i];
      trials[i].environment.emplace(with_candidate(scenario_, candidates[i]), device_);
      trials[i].windows.resize(windows.size());
    }
    std::atomic<std::int64_t> done = 0;
    const std::size_t tasks = trials.size() * windows.size();
    const auto total = static_cast<std::int64_t>(tasks);
    parallel_for(tasks, options_.threads, [&](std::size_t task) {
      Trial& trial = trials[task / windows.size()];
      const std::size_t place = task % windows.size();
      trial.windows[place] = figures_of(trial, windows[place]);
      if (options_.advance) options_.advance(++done, total);
    });
    return ranked(trials);
  }

  WindowFigures figures_of(const Trial& trial, std::size_t window) const {
    static const Method& method = find_method("libra");
    const Scenario& scenario = trial.environment->scenario();
    const auto slots = Arranger(scenario, method).arrange(windows_[window]);
    const auto first_step = static_cast<std::int64_t>(window) * scenario.ga();
    const auto attention = window_times(*trial.environment, method, slots, first_step);
    return window_figures(*trial.environment, method, attention, slots, false);
  }

  std::vector<Verdict> ranked(const std::vector<Trial>& trials) {
    std::vector<Verdict> verdicts;
    double least = std::numeric_limits<double>::infinity();
    verdicts.reserve(trials.size());
    for (const Trial& trial : trials) {
      ++result_.candidates;
      const Verdict verdict = verdict_of(trial);
      least = std::min(least, verdict.memory_bytes);
      if (verdict.memory_bytes > cap_bytes_) {
        ++result_.over_cap;
      } else {
        verdicts.push_back(verdict);
      }
    }
    if (verdicts.empty()) {
      throw ConfigError(fmt::format(
          "nothing fits into {} a GPU: the least that was found is {}; use more PP, CP or GPUs, or "
          "fewer layers",
          format_bytes(static_cast<std::int64_t>(cap_bytes_)),
          format_bytes(static_cast<std::int64_t>(least))));
    }
    std::stable_sort(verdicts.begin(), verdicts.end(),
                     [](const Verdict& a, const Verdict& b) { return a.step_s < b.step_s; });
    return verdicts;
  }

  Verdict verdict_of(const Trial& trial) const {
    Verdict verdict;
    verdict.candidate = trial.candidate;
    double tokens = 0;
    for (const WindowFigures& window : trial.windows) {
      verdict.step_seconds.push_back(window.step_s);
      verdict.memory_bytes = std::max(verdict.memory_bytes, window.memory_bytes);
      verdict.step_s += window.step_s;
      tokens += window.tokens;
    }
    verdict.tokens_per_gpu_s = tokens / verdict.step_s / scenario_.gpus();
    verdict.step_s /= static_cast<double>(trial.windows.size());
    verdict.step_s_deviation = standard_deviation(verdict.step_seconds);
    return verdict;
  }

  void compare() {
    const Verdict best = result_.ranked.front();
    for (Verdict& verdict : result_.ranked) {
      std::vector<double> behind;
      behind.reserve(verdict.step_seconds.size());
      for (std::size_t i = 0; i < verdict.step_seconds.size(); ++i) {
        behind.push_back(verdict.step_seconds[i] / best.step_seconds[i] - 1);
      }
      verdict.behind = mean(behind);
      verdict.behind_error =
          standard_deviation(behind) / std::sqrt(static_cast<double>(behind.size()));
    }
  }

  const Scenario& scenario_;
  const Windows& windows_;
  const TuneOptions& options_;
  DeviceProfile device_;
  double cap_bytes_;
  TuneResult result_;
};

}  // namespace

std::string candidate_options(const Candidate& candidate) {
  return fmt::format(
      "--pool {} --block {} --head-shards {} --chunks {} --tau {} --placer {} --home {}",
      candidate.pool, format_size(candidate.block_tokens), candidate.head_shards, candidate.chunks,
      candidate.tau_ppm / 1e6, placer_name(candidate.placer), home_name(candidate.home));
}

Scenario with_candidate(Scenario scenario, const Candidate& candidate) {
  scenario.pool = candidate.pool;
  scenario.plan.block_tokens = candidate.block_tokens;
  scenario.plan.head_shards = candidate.head_shards;
  scenario.plan.chunks = candidate.chunks;
  scenario.plan.tau_ppm = candidate.tau_ppm;
  scenario.plan.placer = candidate.placer;
  scenario.plan.fetch = default_fetch(candidate.placer);
  scenario.plan.home = candidate.home;
  return scenario;
}

TuneResult tune(const Scenario& scenario, const Windows& windows, const TuneOptions& options) {
  return Tuner(scenario, windows, options).run();
}

}  // namespace libra
