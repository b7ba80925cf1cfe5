// How uneven windows are, and how even pools make them.
//
// Internal to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libra/corpus/packed_sequence.h"
#include "libra/plan/pool_assignment.h"

namespace libra {

/// Attention work of each sequence, in query-key pairs.
std::vector<std::int64_t> costs_of(std::span<const PackedSequence> window);

/// Sequence of a window. Below this P no grouping can be even. 1 for a window without work.
double heaviest_over_mean(std::span<const PackedSequence> window);

/// R - 1, mean over the windows.
double mean_r_minus_1(const std::vector<std::vector<PackedSequence>>& windows, std::int32_t pool,
                      Grouping grouping);

/// `count` places of `unevenness` (all, if there are not more), from the most even to the least, so
/// that few windows stand for all: the first ones do not if one enormous document fills them.
std::vector<std::size_t> spread_out(const std::vector<double>& unevenness, std::size_t count);

}  // namespace libra
