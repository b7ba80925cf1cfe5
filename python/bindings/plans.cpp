#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/corpus/packed_sequence.h"
#include "libra/plan/memory_plan.h"
#include "libra/plan/plan_binary.h"
#include "libra/plan/plan_json.h"
#include "libra/plan/pool_plan.h"
#include "libra/plan/traffic.h"
#include "libra/plan/validate.h"
#include "python/bindings/arguments.h"
#include "python/bindings/bindings.h"
#include "python/bindings/planning.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace libra::python {
namespace {

using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

void check_worker(const PoolPlan& plan, std::int32_t worker) {
  if (worker >= 0 && worker < plan.workers()) return;
  throw ConfigError(fmt::format("there is no worker {}: the pool has workers 0 to {}", worker,
                                plan.workers() - 1));
}

Ranges runs(const PoolPlan& plan, std::int32_t worker) {
  check_worker(plan, worker);
  const std::vector<TokenRange>& own = plan.layout.part_of(worker).runs;
  Ranges result;
  result.reserve(own.size());
  for (const TokenRange& run : own) result.emplace_back(run.begin, run.end);
  return result;
}

std::int64_t rows(const PoolPlan& plan, std::int32_t worker) {
  check_worker(plan, worker);
  return plan.layout.part_of(worker).rows;
}

// What the homes would compute if nothing moved, over the mean.
double skew(const PoolPlan& plan) {
  const Tiling& tiling = plan.tiling;
  Placement home;
  home.load.assign(at(plan.workers()), 0);
  for (std::int32_t tile = 0; tile < tiling.tiles(); ++tile)
    home.load[at(tiling.home_of(tile))] += tiling.block_of(tile).cost;
  return home.max_over_mean();
}

nb::dict memory(const PoolPlan& plan, std::int32_t worker) {
  check_worker(plan, worker);
  const WorkerMemory memory = plan_memory(plan)[at(worker)];
  nb::dict bytes;
  bytes["arena"] = max_arena_bytes(plan);
  bytes["saved"] = memory.saved.bytes;
  bytes["scratch"] = memory.scratch.bytes;
  return bytes;
}

nb::dict traffic(const PoolPlan& plan) {
  nb::dict bytes;
  bytes["forward"] = forward_traffic(plan).total();
  bytes["backward"] = backward_traffic(plan).total();
  return bytes;
}

std::vector<std::pair<std::string, std::string>> violations(const PoolPlan& plan) {
  std::vector<std::pair<std::string, std::string>> found;
  for (Violation& violation : validate(plan))
    found.emplace_back(std::move(violation.rule), std::move(violation.detail));
  return found;
}

nb::bytes to_bytes(const PoolPlan& plan) {
  const std::vector<std::byte> bytes = encode_plan(plan);
  return nb::bytes(bytes.data(), bytes.size());
}

std::shared_ptr<PoolPlan> from_bytes(const nb::bytes& bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.c_str());
  return std::make_shared<PoolPlan>(decode_plan(std::span(begin, bytes.size())));
}

std::shared_ptr<PoolPlan> plan_of(const nb::args& positional, const nb::kwargs& keywords) {
  using Word = std::optional<std::string>;
  Arguments given("make_plan", {"options", "sequences"}, positional, keywords);
  const auto options = given.required<PlanOptions>("options");
  const auto sequences = given.required<std::vector<PackedSequence>>("sequences");
  const auto device_profile = given.optional<Word>("device_profile", {});
  const auto memory_cap = given.optional<std::optional<std::int64_t>>("memory_cap", {});
  const auto cluster = given.optional<Word>("cluster", {});
  given.check_all_taken();
  const nb::gil_scoped_release unlocked;
  const Planning planning(options, device_profile, memory_cap, cluster);
  return std::make_shared<PoolPlan>(planning.plan(sequences));
}

PackedSequence sequence_of(const nb::args& positional, const nb::kwargs& keywords) {
  Arguments given("PackedSequence", {"tokens", "sample_tokens"}, positional, keywords);
  PackedSequence sequence;
  sequence.tokens = given.required<std::int64_t>("tokens");
  sequence.sample_tokens = given.required<std::vector<std::int64_t>>("sample_tokens");
  given.check_all_taken();
  return sequence;
}

void bind_sequence(nb::module_& module) {
  nb::class_<PackedSequence>(module, "PackedSequence",
                             "Samples end to end in a fixed number of tokens; the rest is padding.")
      .def(
          "__init__",
          [](PackedSequence* self, const nb::args& positional, const nb::kwargs& keywords) {
            new (self) PackedSequence(sequence_of(positional, keywords));
          },
          nb::sig("def __init__(self, tokens: int, sample_tokens: "
                  "collections.abc.Sequence[int]) -> None"))
      .def_ro("tokens", &PackedSequence::tokens, "The budget, padding included.")
      .def_ro("sample_tokens", &PackedSequence::sample_tokens, "In order; zeros are allowed.")
      .def("__eq__", [](const PackedSequence& a, const PackedSequence& b) { return a == b; })
      .def("__repr__", [](const PackedSequence& sequence) {
        return fmt::format("PackedSequence(tokens={}, samples={})", sequence.tokens,
                           sequence.sample_tokens.size());
      });
}

}  // namespace

void bind_plans(nb::module_& module) {
  bind_sequence(module);
  nb::class_<PoolPlan>(module, "PoolPlan",
                       "The plan of one pool for one microbatch: who computes what, and what "
                       "travels. Immutable; serves every layer, forward, recompute and backward.")
      .def_ro("options", &PoolPlan::options)
      .def_ro("sequences", &PoolPlan::sequences, "By replica in the pool.")
      .def_prop_ro("workers", &PoolPlan::workers, "replicas * cp.")
      .def_prop_ro("tiles", [](const PoolPlan& plan) { return plan.tiling.tiles(); })
      .def_prop_ro("tiles_moved", &PoolPlan::tiles_moved)
      .def_prop_ro(
          "loads", [](const PoolPlan& plan) { return plan.placement.load; },
          "Work by worker, in query-key pairs times heads, or picoseconds.")
      .def_prop_ro(
          "balance", [](const PoolPlan& plan) { return plan.placement.max_over_mean(); },
          "Heaviest load over the mean.")
      .def_prop_ro("skew", &skew, "The same if every tile stayed at its home.")
      .def_prop_ro("fingerprint", &plan_fingerprint,
                   "64 bits, equal on two ranks exactly if they hold the same plan.")
      .def("runs", &runs, "worker"_a,
           "Tokens [begin, end) of its sequence that the worker holds, in local order.")
      .def("rows", &rows, "worker"_a, "Number of those tokens.")
      .def("memory", &memory, "worker"_a,
           "Bytes besides the caller's tensors: arena (of the transport), saved (from forward to "
           "backward, per layer), scratch (in backward).")
      .def_prop_ro("traffic", &traffic, "Bytes that one layer moves: forward, backward.")
      .def("validate", &violations, "(rule, detail) of every promise that is broken; none is.")
      .def("to_bytes", &to_bytes, "The binary form (docs/plan_format.md).")
      .def_static("from_bytes", &from_bytes, "data"_a,
                  "Raises PlanError for bytes that are not a plan of this version.")
      .def("to_json", &plan_to_json)
      .def("__eq__", [](const PoolPlan& a, const PoolPlan& b) { return a == b; })
      .def("__repr__", [](const PoolPlan& plan) {
        return fmt::format("PoolPlan({} workers, {} tiles, {} moved, balance {:.3f})",
                           plan.workers(), plan.tiling.tiles(), plan.tiles_moved(),
                           plan.placement.max_over_mean());
      });
  module.def(
      "make_plan", &plan_of,
      nb::sig("def make_plan(options: PlanOptions, sequences: "
              "collections.abc.Sequence[PackedSequence], *, device_profile: str | None = "
              "None, memory_cap: int | None = None, cluster: str | None = None) -> PoolPlan"),
      "The plan of the pool that these packed sequences form, one a replica.\n\n"
      "device_profile: balance its seconds (a built-in name or a JSON file) instead of "
      "FLOPs. memory_cap: most extra bytes of a worker; more chunks and refetch are tried "
      "before it is an error. cluster: plan for its links (a preset or a JSON file), keys "
      "crossing once to a node. Raises ConfigError for options or sequences that break a "
      "rule.");
}

}  // namespace libra::python
