#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libra/base/error.h"
#include "libra/plan/plan_options.h"
#include "libra/plan/used_options.h"
#include "python/bindings/arguments.h"
#include "python/bindings/bindings.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace libra::python {
namespace {

using Runs = std::vector<std::pair<std::int64_t, std::int64_t>>;
using ExplicitRuns = std::vector<std::vector<Runs>>;

std::int32_t millionths(double tau) {
  if (!(tau >= 0 && tau <= 100)) {
    throw ConfigError(fmt::format("tau is {}: it must be from 0 to 100, 0.03 is the default", tau));
  }
  return static_cast<std::int32_t>(std::lround(tau * 1e6));
}

std::vector<std::vector<std::vector<TokenRange>>> token_ranges(const ExplicitRuns& given) {
  std::vector<std::vector<std::vector<TokenRange>>> replicas;
  replicas.reserve(given.size());
  for (const auto& parts : given) {
    auto& ranges = replicas.emplace_back();
    for (const Runs& runs : parts) {
      ranges.emplace_back();
      for (const auto& [begin, end] : runs) ranges.back().push_back({begin, end});
    }
  }
  return replicas;
}

PlanOptions make_options(const nb::args& positional, const nb::kwargs& keywords) {
  Arguments given("PlanOptions", {}, positional, keywords);
  const PlanOptions preset;
  const auto number = [&given](const char* name, std::int32_t other) {
    return given.optional<std::int32_t>(name, other);
  };
  const auto word = [&given](const char* name, std::string_view other) {
    return given.optional<std::string>(name, std::string(other));
  };
  PlanOptions options;
  options.shape.q_heads = given.required<std::int32_t>("q_heads");
  options.shape.kv_heads = given.required<std::int32_t>("kv_heads");
  options.shape.head_dim = given.required<std::int32_t>("head_dim");
  options.shape.value_dim =
      given.optional<std::optional<std::int32_t>>("value_dim", {}).value_or(options.shape.head_dim);
  options.storage = parse_dtype(word("dtype", dtype_name(preset.storage)));
  options.cp = number("cp", preset.cp);
  options.tp = number("tp", preset.tp);
  options.home = parse_home(word("home", home_name(preset.home)));
  options.explicit_runs = token_ranges(given.optional<ExplicitRuns>(
      "explicit_runs", {}, "[replica][token part] -> [(begin, end), ...]"));
  options.block_tokens = given.optional<std::int64_t>("block_tokens", preset.block_tokens);
  options.head_shards = number("head_shards", preset.head_shards);
  options.chunks = number("chunks", preset.chunks);
  options.placer = parse_placer(word("placer", placer_name(preset.placer)));
  const auto fetch = given.optional<std::optional<std::string>>("fetch", {});
  options.fetch = fetch ? parse_fetch(*fetch) : default_fetch(options.placer);
  options.tau_ppm = millionths(given.optional<double>("tau", preset.tau_ppm / 1e6));
  options.backward = parse_backward(word("backward", backward_name(preset.backward)));
  options.return_lse = given.optional<bool>("return_lse", preset.return_lse);
  options.local_first = given.optional<bool>("local_first", preset.local_first);
  options.max_tile_pairs = given.optional<std::int64_t>("max_tile_pairs", preset.max_tile_pairs);
  options.gpus_per_node = number("gpus_per_node", preset.gpus_per_node);
  options.node_fetch = given.optional<bool>("node_fetch", preset.node_fetch);
  options.inter_node_weight = number("inter_node_weight", preset.inter_node_weight);
  options.search_us = number("search_us", preset.search_us);
  given.check_all_taken();
  return options;
}

ExplicitRuns pairs(const std::vector<std::vector<std::vector<TokenRange>>>& replicas) {
  ExplicitRuns result;
  result.reserve(replicas.size());
  for (const auto& parts : replicas) {
    auto& out = result.emplace_back();
    for (const auto& ranges : parts) {
      out.emplace_back();
      for (const TokenRange& range : ranges) out.back().emplace_back(range.begin, range.end);
    }
  }
  return result;
}

std::string represent(const PlanOptions& options) {
  return fmt::format(
      "PlanOptions(q_heads={}, kv_heads={}, head_dim={}, value_dim={}, dtype='{}', cp={}, tp={}, "
      "home='{}', block_tokens={}, head_shards={}, chunks={}, placer='{}', fetch='{}', tau={}, "
      "backward='{}', return_lse={}, local_first={}, max_tile_pairs={}, gpus_per_node={}, "
      "node_fetch={}, inter_node_weight={}, search_us={})",
      options.shape.q_heads, options.shape.kv_heads, options.shape.head_dim,
      options.shape.value_dim, dtype_name(options.storage), options.cp, options.tp,
      home_name(options.home), options.block_tokens, options.head_shards, options.chunks,
      placer_name(options.placer), fetch_name(options.fetch), options.tau_ppm / 1e6,
      backward_name(options.backward), options.return_lse ? "True" : "False",
      options.local_first ? "True" : "False", options.max_tile_pairs, options.gpus_per_node,
      options.node_fetch ? "True" : "False", options.inter_node_weight, options.search_us);
}

constexpr const char* kDoc = R"(What a plan depends on besides the sequences of its pool.

Equal for all pools of a run and on every rank. Immutable.

Args:
  q_heads, kv_heads, head_dim, value_dim: of the whole model (not of one TP rank); value_dim is
    head_dim unless given.
  dtype: "bf16", "fp16", "fp32" or "fp64": of q, k, v, out and their gradients.
  cp: ranks that share one sequence's attention, tp among them.
  tp: ranks that share a run of tokens, each with q_heads / tp and kv_heads / tp heads.
  home: which tokens of a sequence a rank holds: "contiguous", "zigzag-row", "zigzag-document" or
    "explicit" (then explicit_runs: [replica][token part] -> [(begin, end), ...]).
  block_tokens: B, most tokens of a tile; small blocks balance better, large ones move less.
  head_shards: H, over the whole model's heads.
  chunks: M, head chunks of the pipeline.
  placer: "balanced", "reserve", "paper", "ulysses" (needs head_shards = cp) or "none".
  fetch: "prefix" or "whole"; whole for the placer paper, prefix for the others unless given.
  tau: cap on a rank's load over the mean.
  backward: "keep" what the forward pass fetched, or "refetch" it.
  return_lse: the log-sum-exp goes home with the output.
  local_first: tiles that need no exchange run first and unchunked.
  max_tile_pairs: a tile of more query-key pairs is cut into halves; 0: never. The placer balanced
    sets it in its plans.
  gpus_per_node: consecutive workers of a node.
  node_fetch: for the placers balanced and reserve, what several workers of a node need of a KV
    group crosses to the node once.
  inter_node_weight: for the placer balanced, a byte between nodes counts as 1 + this many.
  search_us: for the placer balanced, microseconds of search on a usual core.

Raises ConfigError for a name that is not there, or a value that cannot be; rules between options
are checked where they are planned with, and an option that the placer does not look at is an error
there.)";

constexpr const char* kSignature =
    "def __init__(self, *, q_heads: int, kv_heads: int, head_dim: int, "
    "value_dim: int | None = None, dtype: str = 'bf16', cp: int = 1, tp: int = 1, "
    "home: str = 'contiguous', explicit_runs: collections.abc.Sequence[collections.abc.Sequence["
    "collections.abc.Sequence[tuple[int, int]]]] = [], block_tokens: int = 4096, "
    "head_shards: int = 2, chunks: int = 2, placer: str = 'balanced', fetch: str | None = None, "
    "tau: float = 0.03, backward: str = 'keep', return_lse: bool = False, "
    "local_first: bool = True, max_tile_pairs: int = 0, gpus_per_node: int = 8, "
    "node_fetch: bool = False, inter_node_weight: int = 0, search_us: int = 0) -> None";

}  // namespace

void bind_options(nb::module_& module) {
  nb::class_<PlanOptions>(module, "PlanOptions", kDoc)
      .def(
          "__init__",
          [](PlanOptions* self, const nb::args& positional, const nb::kwargs& keywords) {
            new (self) PlanOptions(make_options(positional, keywords));
          },
          nb::sig(kSignature))
      .def_prop_ro("q_heads", [](const PlanOptions& o) { return o.shape.q_heads; })
      .def_prop_ro("kv_heads", [](const PlanOptions& o) { return o.shape.kv_heads; })
      .def_prop_ro("head_dim", [](const PlanOptions& o) { return o.shape.head_dim; })
      .def_prop_ro("value_dim", [](const PlanOptions& o) { return o.shape.value_dim; })
      .def_prop_ro("dtype", [](const PlanOptions& o) { return std::string(dtype_name(o.storage)); })
      .def_ro("cp", &PlanOptions::cp)
      .def_ro("tp", &PlanOptions::tp)
      .def_prop_ro("home", [](const PlanOptions& o) { return std::string(home_name(o.home)); })
      .def_prop_ro("explicit_runs", [](const PlanOptions& o) { return pairs(o.explicit_runs); })
      .def_ro("block_tokens", &PlanOptions::block_tokens)
      .def_ro("head_shards", &PlanOptions::head_shards)
      .def_ro("chunks", &PlanOptions::chunks)
      .def_prop_ro("placer",
                   [](const PlanOptions& o) { return std::string(placer_name(o.placer)); })
      .def_prop_ro("fetch", [](const PlanOptions& o) { return std::string(fetch_name(o.fetch)); })
      .def_prop_ro("tau", [](const PlanOptions& o) { return o.tau_ppm / 1e6; })
      .def_prop_ro("backward",
                   [](const PlanOptions& o) { return std::string(backward_name(o.backward)); })
      .def_ro("return_lse", &PlanOptions::return_lse)
      .def_ro("local_first", &PlanOptions::local_first)
      .def_ro("max_tile_pairs", &PlanOptions::max_tile_pairs)
      .def_ro("gpus_per_node", &PlanOptions::gpus_per_node)
      .def_ro("node_fetch", &PlanOptions::node_fetch)
      .def_ro("inter_node_weight", &PlanOptions::inter_node_weight)
      .def_ro("search_us", &PlanOptions::search_us)
      .def(
          "faithful", [](const PlanOptions& o) { return faithful(o); },
          "The paper's system as it stands: placer paper, whole groups, tau 0.03, four chunks (or "
          "as many as the heads allow), every tile in every chunk, no node fetch, no search; the "
          "rest is kept.")
      .def(
          "check",
          [](const PlanOptions& o, std::int32_t replicas) {
            check_options(o, replicas);
            const std::array placers = {o.placer};
            check_used(o, false, placers, option_name);
          },
          "replicas"_a,
          "Raises ConfigError for the first rule that a pool of so many replicas "
          "would break; it names the nearest legal value.")
      .def("__eq__", [](const PlanOptions& a, const PlanOptions& b) { return a == b; })
      .def("__repr__", &represent);
}

}  // namespace libra::python
