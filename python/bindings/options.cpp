#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libra/base/error.h"
#include "libra/plan/plan_options.h"
#include "python/bindings/bindings.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace libra::python {
namespace {

using Runs = std::vector<std::pair<std::int64_t, std::int64_t>>;
using ExplicitRuns = std::vector<std::vector<Runs>>;

// What PlanOptions(...) takes, in the words of Python.
struct Keywords {
  std::int32_t q_heads, kv_heads, head_dim;
  std::optional<std::int32_t> value_dim;
  std::string dtype;
  std::int32_t cp, tp;
  std::string home;
  std::int64_t block_tokens;
  std::int32_t head_shards, chunks;
  std::string placer;
  std::optional<std::string> fetch;
  double tau;
  std::string backward;
};

std::int32_t millionths(double tau) {
  if (!(tau >= 0 && tau <= 100)) {
    throw ConfigError(fmt::format("tau is {}: it must be from 0 to 100, 0.03 is the default", tau));
  }
  return static_cast<std::int32_t>(std::lround(tau * 1e6));
}

PlanOptions make_options(const Keywords& given) {
  PlanOptions options;
  options.shape = {given.q_heads, given.kv_heads, given.head_dim,
                   given.value_dim.value_or(given.head_dim)};
  options.storage = parse_dtype(given.dtype);
  options.cp = given.cp;
  options.tp = given.tp;
  options.home = parse_home(given.home);
  options.block_tokens = given.block_tokens;
  options.head_shards = given.head_shards;
  options.chunks = given.chunks;
  options.placer = parse_placer(given.placer);
  options.fetch = given.fetch ? parse_fetch(*given.fetch) : default_fetch(options.placer);
  options.tau_ppm = millionths(given.tau);
  options.backward = parse_backward(given.backward);
  return options;
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
      "backward='{}', return_lse={}, local_first={}, node_fetch={}, gpus_per_node={})",
      options.shape.q_heads, options.shape.kv_heads, options.shape.head_dim,
      options.shape.value_dim, dtype_name(options.storage), options.cp, options.tp,
      home_name(options.home), options.block_tokens, options.head_shards, options.chunks,
      placer_name(options.placer), fetch_name(options.fetch), options.tau_ppm * 1e-6,
      backward_name(options.backward), options.return_lse ? "True" : "False",
      options.local_first ? "True" : "False", options.node_fetch ? "True" : "False",
      options.gpus_per_node);
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
  placer: "reserve", "paper", "ulysses" (needs head_shards = cp) or "none".
  fetch: "prefix" or "whole"; whole for the placer paper, prefix for the others unless given.
  tau: cap on a rank's load over the mean.
  backward: "keep" what the forward pass fetched, or "refetch" it.
  return_lse: the log-sum-exp goes home with the output.
  local_first: tiles that need no exchange run first and unchunked.
  node_fetch: what several ranks of a node need of a KV group crosses to the node once.
  gpus_per_node: where nodes end; rank 0 of a pool is the first of one.

Raises ConfigError for a name that is not there; rules between options are checked by make_plan.)";

}  // namespace

void bind_options(nb::module_& module) {
  const auto init = [](PlanOptions* self, std::int32_t q_heads, std::int32_t kv_heads,
                       std::int32_t head_dim, std::optional<std::int32_t> value_dim,
                       const std::string& dtype, std::int32_t cp, std::int32_t tp,
                       const std::string& home, const ExplicitRuns& explicit_runs,
                       std::int64_t block_tokens, std::int32_t head_shards, std::int32_t chunks,
                       const std::string& placer, const std::optional<std::string>& fetch,
                       double tau, const std::string& backward, bool return_lse, bool local_first,
                       bool node_fetch, std::int32_t gpus_per_node) {
    PlanOptions options =
        make_options({q_heads, kv_heads, head_dim, value_dim, dtype, cp, tp, home, block_tokens,
                      head_shards, chunks, placer, fetch, tau, backward});
    options.explicit_runs = token_ranges(explicit_runs);
    options.return_lse = return_lse;
    options.local_first = local_first;
    options.node_fetch = node_fetch;
    options.gpus_per_node = gpus_per_node;
    new (self) PlanOptions(std::move(options));
  };
  nb::class_<PlanOptions>(module, "PlanOptions", kDoc)
      .def("__init__", init, nb::kw_only(), "q_heads"_a, "kv_heads"_a, "head_dim"_a,
           "value_dim"_a = nb::none(), "dtype"_a = "bf16", "cp"_a = 1, "tp"_a = 1,
           "home"_a = "contiguous", "explicit_runs"_a = ExplicitRuns(), "block_tokens"_a = 4096,
           "head_shards"_a = 2, "chunks"_a = 4, "placer"_a = "reserve", "fetch"_a = nb::none(),
           "tau"_a = 0.03, "backward"_a = "keep", "return_lse"_a = false, "local_first"_a = true,
           "node_fetch"_a = false, "gpus_per_node"_a = 8)
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
      .def_prop_ro("tau", [](const PlanOptions& o) { return o.tau_ppm * 1e-6; })
      .def_prop_ro("backward",
                   [](const PlanOptions& o) { return std::string(backward_name(o.backward)); })
      .def_ro("return_lse", &PlanOptions::return_lse)
      .def_ro("local_first", &PlanOptions::local_first)
      .def_ro("node_fetch", &PlanOptions::node_fetch)
      .def_ro("gpus_per_node", &PlanOptions::gpus_per_node)
      .def(
          "faithful", [](const PlanOptions& o) { return faithful(o); },
          "The paper's system as it stands: placer paper, whole groups, tau 0.03, every tile in "
          "every chunk; the rest is kept.")
      .def(
          "check", [](const PlanOptions& o, std::int32_t replicas) { check_options(o, replicas); },
          "replicas"_a,
          "Raises ConfigError for the first rule that a pool of so many replicas "
          "would break; it names the nearest legal value.")
      .def("__eq__", [](const PlanOptions& a, const PlanOptions& b) { return a == b; })
      .def("__repr__", &represent);
}

}  // namespace libra::python
