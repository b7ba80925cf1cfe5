// The paper's results beside ours: the same experiments in the simulator, in faithful mode
// (libra-paper*) and as shipped (libra*).
//
//   for (const PaperFigure& figure : paper_figures()) print(figure.run(options));
//
// Nothing is tuned to match: the lengths are synthetic:paper-256k and synthetic:paper-1m, which
// meet the paper's published statistics; the device is the measured H200. What the paper does not
// say (Table 1 is missing from our text) is assumed, and each figure says what.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libra/cost/cluster.h"

namespace libra {

struct PaperOptions {
  Cluster cluster;
  std::int32_t steps = 20;  ///< windows; Figure 14 has the paper's 15
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: as many as the machine has
};

/// One number of a figure. What is missing was not published, or is no figure of that mode.
struct PaperRow {
  std::string what;
  std::optional<double> paper;
  std::optional<double> faithful;
  std::optional<double> shipped;
  /// Of a method whose samples may wait: attention work done over that of the windows.
  std::optional<double> work_share = std::nullopt;
};

struct PaperResult {
  std::string unit;         ///< of all rows
  std::string assumptions;  ///< what the paper leaves open
  std::vector<PaperRow> rows;
};

struct PaperFigure {
  std::string_view name;  ///< "12", or "4.2" for a section
  std::string_view title;
  std::string_view why;  ///< where ours differ, and why
  PaperResult (*run)(const PaperOptions& options);
};

/// Length statistics, planning, core attention, training.
const std::vector<PaperFigure>& paper_figures();

/// Throws ConfigError that lists the names.
const PaperFigure& find_paper_figure(std::string_view name);

// The figures, by file: paper_statistics.cpp, paper_attention.cpp, paper_training.cpp.
PaperResult paper_lengths(const PaperOptions& options);
PaperResult paper_production_pools(const PaperOptions& options);
PaperResult paper_groupings(const PaperOptions& options);
PaperResult paper_vrsp_time(const PaperOptions& options);
PaperResult paper_planning_time(const PaperOptions& options);
PaperResult paper_stragglers(const PaperOptions& options);
PaperResult paper_pool_sweep(const PaperOptions& options);
PaperResult paper_tile_grid(const PaperOptions& options);
PaperResult paper_dp_scaling(const PaperOptions& options);
PaperResult paper_end_to_end(const PaperOptions& options);
PaperResult paper_microbatches(const PaperOptions& options);

}  // namespace libra
