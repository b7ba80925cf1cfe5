#include "libra/plan/plan_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/base/names.h"
#include "libra/plan/rules.h"

namespace libra {
namespace {

constexpr Names<HomeKind, 4> kHomes = {{{HomeKind::kContiguous, "contiguous"},
                                        {HomeKind::kZigzagRow, "zigzag-row"},
                                        {HomeKind::kZigzagDocument, "zigzag-document"},
                                        {HomeKind::kExplicit, "explicit"}}};
constexpr Names<PlacerKind, 5> kPlacers = {{{PlacerKind::kNone, "none"},
                                            {PlacerKind::kUlysses, "ulysses"},
                                            {PlacerKind::kPaper, "paper"},
                                            {PlacerKind::kReserve, "reserve"},
                                            {PlacerKind::kBalanced, "balanced"}}};
constexpr Names<Fetch, 2> kFetches = {{{Fetch::kWhole, "whole"}, {Fetch::kPrefix, "prefix"}}};
constexpr Names<BackwardMode, 2> kBackwards = {
    {{BackwardMode::kKeep, "keep"}, {BackwardMode::kRefetch, "refetch"}}};

constexpr std::int64_t kMaxWorkers = 65'536;
constexpr std::int32_t kMaxChunks = 256;

// "divides g or is a multiple of it": the condition for a run of query heads to use whole KV heads,
// or parts of one.
bool fits_group(std::int64_t heads, std::int64_t group) {
  return group % heads == 0 || heads % group == 0;
}

void check_parallelism(const PlanOptions& options) {
  require_positive("CP", options.cp);
  require_at_most("CP", options.cp, kMaxWorkers);
  require_positive("TP", options.tp);
  const auto legal = [&](std::int64_t tp) {
    return options.cp % tp == 0 && options.shape.kv_heads % tp == 0;
  };
  if (legal(options.tp)) return;
  throw ConfigError(
      fmt::format("TP {} does not divide both CP {} (which counts TP ranks) and the {} KV heads: "
                  "nearest legal value {}",
                  options.tp, options.cp, options.shape.kv_heads,
                  nearest_legal(options.tp, options.cp, legal)));
}

bool legal_shards(const PlanOptions& options, std::int64_t shards) {
  const AttentionShape& shape = options.shape;
  return shape.q_heads % shards == 0 && shards % options.tp == 0 &&
         fits_group(shape.q_heads / shards, shape.group());
}

// "M 2 (the default)": what was not given is the caller's to change all the same.
std::string name_and_default(std::string_view letter, std::int32_t value, std::int32_t preset) {
  return fmt::format("{} {}{}", letter, value, value == preset ? " (the default)" : "");
}

std::string head_shards_name(const PlanOptions& options) {
  return name_and_default("H", options.head_shards, PlanOptions{}.head_shards);
}

std::string_view broken_shard_rule(const PlanOptions& options) {
  if (options.shape.q_heads % options.head_shards != 0) return "does not divide the query heads";
  if (options.head_shards % options.tp != 0) return "is not a multiple of TP";
  return "gives shards that neither divide the query heads of a KV head nor are a multiple of them";
}

void check_head_shards(const PlanOptions& options) {
  const AttentionShape& shape = options.shape;
  require_positive("head_shards H", options.head_shards);
  if (!legal_shards(options, options.head_shards)) {
    const std::string nearest =
        nearest_legal(options.head_shards, shape.q_heads,
                      [&](std::int64_t shards) { return legal_shards(options, shards); });
    throw ConfigError(fmt::format(
        "head_shards {} {} ({} query heads, {} a KV head, TP {}): nearest legal value {}",
        head_shards_name(options), broken_shard_rule(options), shape.q_heads, shape.group(),
        options.tp, nearest));
  }
  if (options.placer == PlacerKind::kUlysses && options.head_shards != options.cp) {
    const bool possible = legal_shards(options, options.cp);
    throw ConfigError(fmt::format(
        "placer ulysses needs as many head shards as CP ranks: head_shards {}, CP {}: "
        "nearest legal value {}",
        head_shards_name(options), options.cp,
        possible ? fmt::format("{}", options.cp) : "none with these heads and this CP"));
  }
}

bool legal_chunks(const AttentionShape& shape, std::int32_t head_shards, std::int64_t chunks) {
  const std::int64_t shard_heads = shape.q_heads / head_shards;
  return chunks <= kMaxChunks && shard_heads % chunks == 0 &&
         fits_group(shard_heads / chunks, shape.group());
}

void check_chunks(const PlanOptions& options) {
  require_positive("chunks M", options.chunks);
  require_at_most("chunks M", options.chunks, kMaxChunks);
  const std::int64_t shard_heads = options.shape.q_heads / options.head_shards;
  if (!legal_chunks(options.shape, options.head_shards, options.chunks)) {
    throw ConfigError(fmt::format(
        "chunks {} does not cut a shard of {} query heads, q_heads {} / head_shards {}, "
        "into equal chunks that divide the {} query heads of a KV head or are a "
        "multiple of them: nearest legal value {}",
        name_and_default("M", options.chunks, PlanOptions{}.chunks), shard_heads,
        options.shape.q_heads, head_shards_name(options), options.shape.group(),
        nearest_legal(options.chunks, shard_heads, [&](std::int64_t chunks) {
          return legal_chunks(options.shape, options.head_shards, chunks);
        })));
  }
}

void check_limits(const PlanOptions& options, std::int32_t replicas) {
  constexpr std::int64_t kMaxBlockTokens = std::int64_t{1} << 30;
  constexpr std::int64_t kMaxNodeWeight = 1000;
  constexpr std::int64_t kMaxSearchUs = 100'000'000;
  require_positive("the pool size P", replicas);
  require_positive("the block size B", options.block_tokens);
  require_at_most("the block size B", options.block_tokens, kMaxBlockTokens);
  if (std::int64_t{replicas} * options.cp > kMaxWorkers) {
    throw ConfigError(fmt::format("P {} x CP {} is more than the {} workers a pool may have",
                                  replicas, options.cp, kMaxWorkers));
  }
  if (options.tau_ppm < 0 || options.tau_ppm > kMaxTauPpm) {
    throw ConfigError(fmt::format("tau {} is not between 0 and 100", options.tau_ppm / 1e6));
  }
  require_not_negative("the most query-key pairs of a tile", options.max_tile_pairs);
  require_positive("the number of GPUs per node", options.gpus_per_node);
  require_not_negative("the weight of bytes between nodes", options.inter_node_weight);
  require_at_most("the weight of bytes between nodes", options.inter_node_weight, kMaxNodeWeight);
  require_not_negative("the search time in us", options.search_us);
  require_at_most("the search time in us", options.search_us, kMaxSearchUs);
}

// M 4 in all of the paper's experiments, or what the heads allow of it. Invalid shapes and shards
// are left for check_options to report.
std::int32_t papers_chunks(const PlanOptions& options) {
  constexpr std::int32_t kChunks = 4;
  const AttentionShape& shape = options.shape;
  const bool sound =
      shape.kv_heads > 0 && shape.q_heads >= shape.kv_heads && options.head_shards > 0;
  return sound ? largest_legal_chunks(shape, options.head_shards, kChunks) : options.chunks;
}

}  // namespace

std::string_view home_name(HomeKind kind) { return name_of(kHomes, kind); }
std::string_view placer_name(PlacerKind kind) { return name_of(kPlacers, kind); }
std::string_view fetch_name(Fetch fetch) { return name_of(kFetches, fetch); }
std::string_view backward_name(BackwardMode mode) { return name_of(kBackwards, mode); }

HomeKind parse_home(std::string_view name) { return parse_name(kHomes, "home layout", name); }
PlacerKind parse_placer(std::string_view name) { return parse_name(kPlacers, "placer", name); }
Fetch parse_fetch(std::string_view name) { return parse_name(kFetches, "fetch", name); }
BackwardMode parse_backward(std::string_view name) {
  return parse_name(kBackwards, "backward mode", name);
}

Fetch default_fetch(PlacerKind placer) {
  return placer == PlacerKind::kPaper ? Fetch::kWhole : Fetch::kPrefix;
}

bool looks_at_links(PlacerKind placer) {
  return placer == PlacerKind::kReserve || placer == PlacerKind::kBalanced;
}

PlanOptions faithful(PlanOptions options) {
  options.placer = PlacerKind::kPaper;
  options.chunks = papers_chunks(options);
  options.fetch = Fetch::kWhole;
  options.tau_ppm = 30'000;
  options.local_first = false;
  options.node_fetch = false;
  options.inter_node_weight = 0;
  options.search_us = 0;
  return options;
}

void check_options(const PlanOptions& options, std::int32_t replicas) {
  validate(options.shape);
  check_parallelism(options);
  check_head_shards(options);
  check_chunks(options);
  check_limits(options, replicas);
}

bool legal_heads(const PlanOptions& options) {
  return options.head_shards > 0 && legal_shards(options, options.head_shards) &&
         legal_chunks(options.shape, options.head_shards, options.chunks);
}

std::int32_t largest_legal_chunks(const AttentionShape& shape, std::int32_t head_shards,
                                  std::int32_t wanted) {
  std::int32_t chunks = std::min(wanted, kMaxChunks);
  while (chunks > 1 && !legal_chunks(shape, head_shards, chunks)) --chunks;
  return chunks;
}

}  // namespace libra
