// Which packed sequences of a window form a pool: VRSP (the paper's section 4.2), and what it is
// compared with.
//
//   window (GBS sequences)          pools of P = 2, K = GBS / P of them
//   [ 9 1 8 2 7 3 ]       VRSP ->   {9 1} {8 2} {7 3}
//
// Every rank computes the same assignment from the same costs: costs are integers and every tie is
// broken by index.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libra/corpus/packed_sequence.h"

namespace libra {

enum class Grouping : std::uint8_t {
  kProduction,   ///< P consecutive sequences of the window
  kZigzag,       ///< sorted by decreasing cost, dealt to the pools in snake order
  kZigzagSwap,   ///< zigzag, then pairs exchanged between heaviest and lightest pool while R falls
  kVrsp,         ///< heaviest first, each to the least-loaded pool that holds fewer than P
  kVrspRefined,  ///< VRSP, then pairs exchanged between the heaviest pool and any while R falls
};

/// Every grouping, in the order of tables.
inline constexpr std::array kGroupings = {Grouping::kProduction, Grouping::kZigzag,
                                          Grouping::kZigzagSwap, Grouping::kVrsp,
                                          Grouping::kVrspRefined};

/// "production", "zigzag", "zigzag_swap", "vrsp", "vrsp_refined".
std::string_view grouping_name(Grouping grouping);
/// Throws ConfigError that lists the names.
Grouping parse_grouping(std::string_view name);

struct PoolAssignment {
  std::int32_t pool_size = 1;       ///< P
  std::vector<std::int32_t> order;  ///< sequence indices; pool k holds order[k * P, (k + 1) * P)

  std::int32_t pools() const { return static_cast<std::int32_t>(order.size()) / pool_size; }
  std::span<const std::int32_t> pool(std::int32_t k) const {
    return std::span(order).subspan(
        static_cast<std::size_t>(k) * static_cast<std::size_t>(pool_size),
        static_cast<std::size_t>(pool_size));
  }
};

/// Throws ConfigError unless DP divides GBS and P divides DP (the message names the nearest legal
/// value).
void check_window(std::int64_t gbs, std::int64_t dp, std::int64_t pool_size);

/// When and where a pool of the window runs: pool k at gradient-accumulation index k / (DP/P), on
/// the k % (DP/P)-th group of P consecutive replicas.
struct PoolSlot {
  std::int32_t ga_index = 0;
  std::int32_t group = 0;
};
PoolSlot pool_slot(std::int32_t pool, std::int32_t dp, std::int32_t pool_size);

/// Attention work of a packed sequence in query-key pairs per head: sum of l (l + 1) / 2 over its
/// samples.
std::int64_t sequence_cost(const PackedSequence& sequence);

/// The largest sum of a window's costs, in any unit.
inline constexpr std::int64_t kMaxWindowCost = std::int64_t{1} << 62;

/// Requires costs.size() to be a multiple of pool_size, and costs that are not negative and at most
/// kMaxWindowCost together (ConfigError). O(D log D) for D sequences;
/// kZigzagSwap is O(P^2) per exchange on top, kVrspRefined O(P D) at most.
PoolAssignment assign_pools(std::span<const std::int64_t> costs, std::int32_t pool_size,
                            Grouping grouping);

/// The same pools by decreasing cost (ties: as they were), so that those of one GA index are alike.
/// It pays where workers wait for other pools at every GA index (expert all-to-all, pipeline
/// stages) and P is too small for pools of equal cost. O(D + K log K).
PoolAssignment by_load(std::span<const std::int64_t> costs, const PoolAssignment& assignment);

/// R: the heaviest pool's cost over the mean pool's cost; 1 is perfect. 1 if there is no work at
/// all.
double imbalance(std::span<const std::int64_t> costs, const PoolAssignment& assignment);

/// R of a step that waits for the heaviest pool of every GA index: the mean of these pools' costs
/// over the mean pool's cost. `at_once` pools, DP / P, share an index. Never above imbalance().
double imbalance_by_index(std::span<const std::int64_t> costs, const PoolAssignment& assignment,
                          std::int32_t at_once);

}  // namespace libra
