// What a plan depends on besides the sequences of its pool: equal for all pools of a run, and on
// every rank.
//
//   PlanOptions options;                  // Qwen3-8B heads, contiguous homes, the default placer
//   options.cp = 8;
//   options.block_tokens = 4096;
//   check_options(options);               // ConfigError names the rule that is broken
//   PoolPlan plan = make_plan(options, sequences);
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "libra/base/dtype.h"
#include "libra/base/range.h"
#include "libra/cost/attention_shape.h"

namespace libra {

/// Which tokens of a packed sequence a token part (cp / tp of them) owns. Chunk c of n is cut at
/// floor(c * tokens / n).
enum class HomeKind : std::uint8_t {
  kContiguous,      ///< part r owns chunk r of cp/tp
  kZigzagRow,       ///< part r owns chunks r and 2n-1-r of 2n, n = cp/tp, of the whole sequence
  kZigzagDocument,  ///< the same within every sample (Megatron's and TransformerEngine's THD), and
                    ///< within the padding
  kExplicit,        ///< PlanOptions::explicit_runs says
};

enum class PlacerKind : std::uint8_t {
  kNone,      ///< every tile at its home
  kUlysses,   ///< head shard r of a sequence at its CP rank r; needs head_shards = cp
  kPaper,     ///< Algorithm 2: least incremental communication among workers under the cap
  kReserve,   ///< home first; foreign workers keep room for their own tiles
  kBalanced,  ///< as kReserve with a price on room, then repaired under the cap and searched
};

/// How much of a KV group travels to a destination.
enum class Fetch : std::uint8_t {
  kWhole,   ///< the complete group (the paper)
  kPrefix,  ///< only up to the last query computed there
};

/// What the backward pass needs at a destination besides dO.
enum class BackwardMode : std::uint8_t {
  kKeep,     ///< Q, K, V, O and LSE stayed there since the forward pass
  kRefetch,  ///< they travel again: less memory between the passes, more bytes
};

std::string_view home_name(
    HomeKind kind);  ///< "contiguous", "zigzag-row", "zigzag-document", "explicit"
std::string_view placer_name(
    PlacerKind kind);                      ///< "none", "ulysses", "paper", "reserve", "balanced"
std::string_view fetch_name(Fetch fetch);  ///< "whole", "prefix"
std::string_view backward_name(BackwardMode mode);  ///< "keep", "refetch"

/// The inverses. Throw ConfigError that lists the names.
HomeKind parse_home(std::string_view name);
PlacerKind parse_placer(std::string_view name);
Fetch parse_fetch(std::string_view name);
BackwardMode parse_backward(std::string_view name);

/// Whole for `paper`, prefix for the others.
Fetch default_fetch(PlacerKind placer);

/// Whether it weighs what a transfer costs: `reserve` and `balanced`. The others are baselines.
bool looks_at_links(PlacerKind placer);

inline constexpr std::int32_t kMaxTauPpm = 100'000'000;

struct PlanOptions {
  AttentionShape shape;
  DType storage = DType::kBf16;  ///< of Q, K, V, O and their gradients

  std::int32_t cp = 1;  ///< workers that share one sequence, tp among them
  std::int32_t tp = 1;  ///< workers that share a token run, each with q_heads / tp heads; innermost
  HomeKind home = HomeKind::kContiguous;
  /// kExplicit only: [replica][token part] -> runs of the sequence in local order; together every
  /// token once.
  std::vector<std::vector<std::vector<TokenRange>>> explicit_runs;

  std::int64_t block_tokens = 4096;  ///< B: small blocks balance better, large ones move less
  std::int32_t head_shards = 2;      ///< H, over the whole sequence's heads
  /// M: with two, both chunks leave before anything is computed; more are for slow links, and cost
  /// launches. A guest waits for others from the third on (docs/design.md).
  std::int32_t chunks = 2;

  PlacerKind placer = PlacerKind::kBalanced;
  Fetch fetch = Fetch::kPrefix;
  std::int32_t tau_ppm = 30'000;  ///< cap on a worker's load over the mean, in millionths: 3%
  BackwardMode backward = BackwardMode::kKeep;
  bool return_lse = false;  ///< the log-sum-exp goes home with O; implied by kRefetch
  /// Tiles that need no exchange run first and unchunked, under the first dispatches; false: in
  /// every chunk (the paper).
  bool local_first = true;

  /// A tile of more query-key pairs than this is cut into halves, row by row, until it is not; 0:
  /// never. Placer `balanced` sets it in its plans where tiles are too large for the cap.
  std::int64_t max_tile_pairs = 0;

  std::int32_t gpus_per_node = 8;  ///< worker 0 of a pool is the first GPU of a node
  /// What several workers of a node need of a KV group crosses to the node once, to one of them
  /// that passes it on; their gradients cross back as one sum. False: each fetches for itself.
  bool node_fetch = false;
  // Of placer `balanced`, its repair and search:
  std::int32_t inter_node_weight = 0;  ///< a byte between nodes counts 1 + this many times
  /// Microseconds of search on a usual core. Counted in evaluations, so that plans are equal
  /// everywhere, however long these take.
  std::int32_t search_us = 0;

  std::int32_t node_of(std::int32_t worker) const { return worker / gpus_per_node; }
  bool lse_goes_home() const { return return_lse || backward == BackwardMode::kRefetch; }
  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};

/// The paper's system as it stands: placer `paper`, whole groups, tau 3%, four chunks (or as many
/// as the heads allow), no local-first class, nothing that placer `paper` does not look at. Keeps
/// the rest.
PlanOptions faithful(PlanOptions options);

/// Throws ConfigError for the first rule that is broken. `replicas` is P, the number of sequences
/// of the pool.
void check_options(const PlanOptions& options, std::int32_t replicas);

/// Whether H and M keep the rules of heads, which check_options tells in words.
bool legal_heads(const PlanOptions& options);

/// The largest legal chunk count up to `wanted` for these heads and shards.
std::int32_t largest_legal_chunks(const AttentionShape& shape, std::int32_t head_shards,
                                  std::int32_t wanted);

}  // namespace libra
