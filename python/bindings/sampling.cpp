#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "libra/base/index.h"
#include "python/bindings/bindings.h"
#include "python/bindings/process_owned.h"
#include "python/bindings/window_counter.h"
#include "python/bindings/window_planner.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace libra::python {
namespace {

using Lengths = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Planner = ProcessOwned<WindowPlanner>;
/// (document, first token, tokens) of a sample.
using Sample = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

std::vector<std::int64_t> copy(const Lengths& lengths) {
  return {lengths.data(), lengths.data() + lengths.size()};
}

std::vector<Sample> samples_of(const Packed& packed) {
  std::vector<Sample> samples;
  samples.reserve(packed.origins.size());
  for (std::size_t i = 0; i < packed.origins.size(); ++i) {
    samples.emplace_back(packed.origins[i].document, packed.origins[i].first_token,
                         packed.sequence.sample_tokens[i]);
  }
  return samples;
}

// Sequence indices of one replica by GA index.
std::vector<std::int32_t> microbatches(const PlannedWindow& window, std::int32_t dp,
                                       std::int32_t dp_rank) {
  const std::int32_t pool_size = window.assignment.pool_size;
  std::vector<std::int32_t> sequences;
  for (std::int32_t pool = 0; pool < window.assignment.pools(); ++pool) {
    if (pool_slot(pool, dp, pool_size).group != dp_rank / pool_size) continue;
    sequences.push_back(window.assignment.pool(pool)[at(dp_rank % pool_size)]);
  }
  return sequences;
}

// Who waits for something of its own accord asks now and then for what the user has pressed.
constexpr std::chrono::milliseconds kBetweenSignals{100};

void throw_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

std::int64_t windows_in(WindowCounter& counter, std::int64_t epoch) {
  using Clock = std::chrono::steady_clock;
  const nb::gil_scoped_release unlocked;
  auto asked = Clock::now();
  return counter.windows_in(epoch, [&] {
    if (Clock::now() - asked < kBetweenSignals) return;
    const nb::gil_scoped_acquire locked;
    throw_signals();
    asked = Clock::now();
  });
}

std::shared_ptr<PlannedWindow> next_window(Planner& planner) {
  for (;; throw_signals()) {
    const nb::gil_scoped_release unlocked;
    if (const auto window = planner.get().next_within(kBetweenSignals))
      return std::const_pointer_cast<PlannedWindow>(window);
  }
}

PackingOptions packing_options(std::int64_t seq_len, const std::string& packing,
                               const std::string& oversize, bool keep_empty) {
  PackingOptions options;
  options.tokens = seq_len;
  options.packing = parse_packing(packing);
  options.oversize = parse_oversize(oversize);
  options.keep_empty = keep_empty;
  return options;
}

void bind_windows(nb::module_& module) {
  nb::class_<WindowOptions>(module, "WindowOptions", "How documents become windows.")
      .def(
          "__init__",
          [](WindowOptions* self, std::int64_t seq_len, std::int64_t gbs,
             const std::string& packing, const std::string& oversize, bool keep_empty,
             const std::string& order, const std::string& last_window, std::uint64_t seed) {
            new (self) WindowOptions{gbs, packing_options(seq_len, packing, oversize, keep_empty),
                                     parse_order(order), parse_last_window(last_window), seed};
          },
          nb::kw_only(), "seq_len"_a, "gbs"_a, "packing"_a, "oversize"_a, "keep_empty"_a, "order"_a,
          "last_window"_a, "seed"_a);
  module.def(
      "check_windows",
      [](const Lengths& lengths, const WindowOptions& windows) {
        const nb::gil_scoped_release unlocked;
        check_windows(copy(lengths), windows);
      },
      "lengths"_a, "windows"_a);
  nb::class_<WindowCounter>(module, "WindowCounter", "See python/bindings/window_counter.h.")
      .def(
          "__init__",
          [](WindowCounter* self, const Lengths& lengths, const WindowOptions& windows) {
            const nb::gil_scoped_release unlocked;
            new (self) WindowCounter(copy(lengths), windows);
          },
          "lengths"_a, "windows"_a)
      .def("windows_in", &windows_in, "epoch"_a);
  nb::class_<WlbOptions>(module, "WlbOptions", "See libra/corpus/wlb_packing.h.")
      .def(
          "__init__",
          [](WlbOptions* self, std::int32_t bins, std::int64_t bin_tokens, double token_cap,
             double equal_cost_tokens, bool delay) {
            const WlbOptions options{bins, bin_tokens, token_cap, equal_cost_tokens, delay};
            static_cast<void>(WlbWindows(options));  // throws for what cannot be
            new (self) WlbOptions(options);
          },
          nb::kw_only(), "bins"_a, "bin_tokens"_a, "token_cap"_a, "equal_cost_tokens"_a, "delay"_a);
}

}  // namespace

void bind_sampling(nb::module_& module) {
  nb::class_<Planning>(module, "Planning", "Plan options with the cost that is balanced.")
      .def(nb::init<PlanOptions, const std::optional<std::string>&, std::optional<std::int64_t>,
                    const std::optional<std::string>&, const std::vector<std::int32_t>&>(),
           "options"_a, "device_profile"_a = nb::none(), "memory_cap"_a = nb::none(),
           "cluster"_a = nb::none(), "gpus"_a = std::vector<std::int32_t>{},
           "gpus: which of the cluster's the workers are, by worker; its first unless given.")
      .def(
          "plan",
          [](const Planning& planning, const std::vector<PackedSequence>& sequences) {
            const nb::gil_scoped_release unlocked;
            return std::make_shared<PoolPlan>(planning.plan(sequences));
          },
          "sequences"_a);
  nb::class_<PlannedWindow>(module, "PlannedWindow", "One optimizer step's packed sequences.")
      .def_ro("epoch", &PlannedWindow::epoch)
      .def_ro("waiting_tokens", &PlannedWindow::waiting_tokens)
      .def_ro("planning_seconds", &PlannedWindow::planning_seconds)
      .def_prop_ro("plans",
                   [](const PlannedWindow& window) {
                     std::vector<std::shared_ptr<PoolPlan>> plans;
                     for (const auto& plan : window.plans)
                       plans.push_back(std::const_pointer_cast<PoolPlan>(plan));
                     return plans;
                   })
      .def("sequences",
           [](const PlannedWindow& window) {
             std::vector<PackedSequence> sequences;
             for (const Packed& packed : window.sequences) sequences.push_back(packed.sequence);
             return sequences;
           })
      .def(
          "samples",
          [](const PlannedWindow& window, std::int32_t sequence) {
            return samples_of(window.sequences.at(at(sequence)));
          },
          "sequence"_a)
      .def(
          "tokens",
          [](const PlannedWindow& window, std::int32_t sequence) {
            return window.sequences.at(at(sequence)).sequence.tokens;
          },
          "sequence"_a)
      .def("microbatches", &microbatches, "dp"_a, "dp_rank"_a,
           "Sequences of this replica, by gradient-accumulation index.");
  bind_windows(module);
  nb::class_<Planner>(module, "WindowPlanner", "See python/bindings/window_planner.h.")
      .def(
          "__init__",
          [](Planner* self, const Lengths& lengths, const WindowOptions& windows, std::int32_t dp,
             std::int32_t dp_rank, std::int32_t pool_size, const std::string& grouping,
             bool by_load, std::int64_t from_epoch, std::int64_t skip_windows,
             std::int32_t prefetch, std::shared_ptr<Planning> planning,
             const std::optional<WlbOptions>& wlb) {
            WindowPlannerOptions options{
                windows,    dp,           pool_size, parse_grouping(grouping), by_load, dp_rank,
                from_epoch, skip_windows, prefetch,  std::move(planning),      wlb};
            const nb::gil_scoped_release unlocked;
            new (self) Planner(std::make_unique<WindowPlanner>(copy(lengths), std::move(options)));
          },
          "lengths"_a, "windows"_a, nb::kw_only(), "dp"_a, "dp_rank"_a, "pool_size"_a, "grouping"_a,
          "by_load"_a, "from_epoch"_a, "skip_windows"_a, "prefetch"_a,
          "planning"_a.none() = nb::none(), "wlb"_a.none() = nb::none())
      .def("next", &next_window)
      .def_prop_ro("waited_seconds",
                   [](const Planner& planner) { return planner.get().waited_seconds(); });
}

}  // namespace libra::python
