#include "libra/sim/paper.h"

#include <fmt/format.h>

#include "libra/base/error.h"
#include "libra/corpus/corpus.h"
#include "libra/corpus/window.h"
#include "libra/sim/paper_workload.h"

namespace libra {

const std::vector<PaperFigure>& paper_figures() {
  static const std::vector<PaperFigure> figures = {
      {"2", "Sample lengths",
       "Of the paper's lengths our text has the median, and that the longest approach a million.",
       paper_lengths},
      {"4", "Pools in production order, R - 1",
       "The lengths are drawn to meet these statistics; single sets of windows differ by draw.",
       paper_production_pools},
      {"8", "Pools by grouping at P 8, R - 1",
       "Zigzag with swap, as we read its name, ends more even than VRSP, unlike in the paper.",
       paper_groupings},
      {"4.2", "Time of VRSP", "Compiled code against a Python package.", paper_vrsp_time},
      {"5", "Time of planning",
       "Compiled code against a Python package; ours also derives every transfer.",
       paper_planning_time},
      {"12", "Straggler of core attention, speedup over Ulysses",
       "Computation falls as in the paper (Figure 15), but where the paper's full system still "
       "exposes much communication, links and overlap are better here. The paper's WLB-LLM does "
       "what ours does without delay: with delay outliers wait, and an optimizer step trains on "
       "other samples; in brackets, how much of the attention work of these windows it has done.",
       paper_stragglers},
      {"15", "Pool-size sweep, straggler over Ulysses' mean",
       "Computation agrees, and communication jumps where a pool outgrows a supernode, but less "
       "than in the paper: its network must reach less than what the cluster here says.",
       paper_pool_sweep},
      {"16", "Block size and head shards, speedup over Ulysses",
       "The collapse at few tiles, and that head shards beat smaller blocks, are there; speedups "
       "are higher because communication is cheaper here, and shards beyond h_kv cost too little "
       "to reverse the order.",
       paper_tile_grid},
      {"13", "DP scaling of training (Figure 1 is Ulysses at 1M)",
       "Both scale better than in the paper, whose share of attention in a step is not published: "
       "linear layers scale perfectly here, and nothing outside the model slows down.",
       paper_dp_scaling},
      {"11", "Training throughput, speedup over Ulysses",
       "Libra is within the paper's range but for qwen3-8b at 1M on 64 GPUs; WLB-LLM is stronger "
       "than in the paper: its outliers wait here until every microbatch has one, and what is "
       "missing in the "
       "brackets still waits at the end of these windows.",
       paper_end_to_end},
      {"14", "Forward time of microbatches over Libra's mean",
       "Both methods do the same work, so that times without waits have nearly equal means: a mean "
       "of 4.14 for Ulysses says that the paper's times hold waits for other ranks. Ours wait only "
       "for the pool and the EP group.",
       paper_microbatches}};
  return figures;
}

const PaperFigure& find_paper_figure(std::string_view name) {
  std::string names;
  for (const PaperFigure& figure : paper_figures()) {
    if (figure.name == name) return figure;
    names += names.empty() ? "" : ", ";
    names += figure.name;
  }
  throw ConfigError(fmt::format("'{}' is not a figure or section: use one of {}", name, names));
}

std::vector<std::vector<PackedSequence>> paper_windows(const PaperWorkload& workload,
                                                       std::int64_t gbs, std::int64_t steps,
                                                       std::uint64_t seed) {
  ReadOptions read;
  read.synthetic_seed = seed;
  const Corpus corpus = read_corpus(workload.corpus, read);
  WindowOptions options;
  options.sequences = gbs;
  options.packing.tokens = workload.seq_tokens;
  options.seed = seed;
  WindowStream stream(corpus, options);
  std::vector<std::vector<PackedSequence>> windows;
  windows.reserve(static_cast<std::size_t>(steps));
  for (std::int64_t step = 0; step < steps; ++step) {
    auto& sequences = windows.emplace_back();
    sequences.reserve(static_cast<std::size_t>(gbs));
    for (Packed& packed : stream.next().sequences) {
      sequences.push_back(std::move(packed.sequence));
    }
  }
  return windows;
}

Scenario paper_scenario(const PaperWorkload& workload, const PaperOptions& options) {
  constexpr std::int32_t kPool = 8;
  Scenario scenario;
  scenario.model = find_model(workload.model);
  scenario.linear = find_linear_shape(workload.model);
  scenario.cluster = options.cluster;
  scenario.seq_tokens = workload.seq_tokens;
  scenario.gbs = workload.gbs;
  scenario.dp = workload.dp;
  scenario.pool = largest_pool(scenario.dp, kPool);
  scenario.plan.shape = scenario.model.attention;
  scenario.plan.cp = workload.cp;
  scenario.plan.block_tokens = workload.block_tokens;
  scenario.plan.head_shards = 2;
  scenario.seed = options.seed;
  return scenario;
}

std::vector<const Method*> methods_named(const std::vector<const char*>& names) {
  std::vector<const Method*> methods;
  methods.reserve(names.size());
  for (const char* const name : names) methods.push_back(&find_method(name));
  return methods;
}

std::optional<double> work_share(const MethodFigures* figures) {
  if (figures == nullptr || figures->method->step_equivalent) return std::nullopt;
  return figures->work_share;
}

std::string row_name(const PaperWorkload& workload, const std::string& what) {
  return fmt::format("{}, {}", workload.name, what);
}

}  // namespace libra
