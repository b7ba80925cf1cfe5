// The paper's two workloads as this room simulates them.
//
// Internal to this room: used by the figures (paper.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libra/corpus/packed_sequence.h"
#include "libra/sim/paper.h"
#include "libra/sim/scenario.h"
#include "libra/sim/simulate.h"

namespace libra {

struct PaperWorkload {
  const char* name;    ///< "256K", "1M"
  const char* corpus;  ///< synthetic model
  const char* model;   ///< whose heads the core-attention experiments have
  std::int64_t seq_tokens;
  std::int32_t gbs;
  std::int32_t cp;
  std::int32_t dp;  ///< of Figure 12
  std::int64_t block_tokens;
};

inline constexpr PaperWorkload kPaperWorkloads[] = {
    {"256K", "synthetic:paper-256k", "qwen3-8b", 262144, 128, 8, 32, 4096},
    {"1M", "synthetic:paper-1m", "qwen3-30b-a3b", 1048576, 32, 16, 16, 8192}};

/// `steps` windows of `gbs` sequences, first-fit, shuffled by the seed.
std::vector<std::vector<PackedSequence>> paper_windows(const PaperWorkload& workload,
                                                       std::int64_t gbs, std::int64_t steps,
                                                       std::uint64_t seed);

/// Core attention of one layer at Figure 12's layout: P 8, H 2, M 4.
Scenario paper_scenario(const PaperWorkload& workload, const PaperOptions& options);

std::vector<const Method*> methods_named(const std::vector<const char*>& names);

/// Of a method that lets samples wait; nothing of the others.
std::optional<double> work_share(const MethodFigures* figures);

/// "256K, P 8": what a row is about.
std::string row_name(const PaperWorkload& workload, const std::string& what);

}  // namespace libra
