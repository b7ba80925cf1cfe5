#include "libra/plan/home_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/pool_limits.h"

namespace libra {
namespace {

// Chunk `index` of `count` equal chunks of [0, tokens), cut at floor(c * tokens / count).
TokenRange chunk_of(std::int64_t tokens, std::int64_t index, std::int64_t count) {
  return {index * tokens / count, (index + 1) * tokens / count};
}

void append_run(TokenPart& part, TokenRange run) {
  if (run.empty()) return;
  part.rows += run.size();
  if (!part.runs.empty() && part.runs.back().end == run.begin) {
    part.runs.back().end = run.end;
  } else {
    part.runs.push_back(run);
  }
}

// Part `index` of `parts` over the tokens [begin, begin + tokens) by the zigzag rule.
void append_zigzag(TokenPart& part, std::int64_t begin, std::int64_t tokens, std::int64_t index,
                   std::int64_t parts) {
  for (const std::int64_t chunk : {index, 2 * parts - 1 - index}) {
    const TokenRange cut = chunk_of(tokens, chunk, 2 * parts);
    append_run(part, {begin + cut.begin, begin + cut.end});
  }
}

void append_zigzag_documents(TokenPart& part, const PackedSequence& sequence, std::int64_t index,
                             std::int64_t parts) {
  std::int64_t begin = 0;
  for (const std::int64_t tokens : sequence.sample_tokens) {
    append_zigzag(part, begin, tokens, index, parts);
    begin += tokens;
  }
  append_zigzag(part, begin, sequence.tokens - begin, index, parts);
}

TokenPart make_part(const PlanOptions& options, const PackedSequence& sequence,
                    std::int32_t replica, std::int32_t index) {
  const std::int32_t parts = options.cp / options.tp;
  TokenPart part{replica, {}, 0};
  switch (options.home) {
    case HomeKind::kContiguous:
      append_run(part, chunk_of(sequence.tokens, index, parts));
      break;
    case HomeKind::kZigzagRow:
      append_zigzag(part, 0, sequence.tokens, index, parts);
      break;
    case HomeKind::kZigzagDocument:
      append_zigzag_documents(part, sequence, index, parts);
      break;
    case HomeKind::kExplicit:
      for (const TokenRange run : options.explicit_runs[at(replica)][at(index)])
        append_run(part, run);
      break;
  }
  return part;
}

void check_explicit_sequence(const std::vector<std::vector<TokenRange>>& parts, std::int64_t tokens,
                             std::int64_t replica) {
  std::vector<TokenRange> runs;
  for (const auto& part : parts) runs.insert(runs.end(), part.begin(), part.end());
  std::sort(runs.begin(), runs.end(), [](TokenRange a, TokenRange b) { return a.begin < b.begin; });
  std::int64_t next = 0;
  for (const TokenRange run : runs) {
    if (run.empty()) continue;
    if (run.begin != next) {
      throw ConfigError(fmt::format("explicit runs of sequence {}: token {} belongs to {} part",
                                    replica, std::min(next, run.begin),
                                    run.begin < next ? "more than one" : "no"));
    }
    next = run.end;
  }
  if (next != tokens) {
    throw ConfigError(fmt::format("explicit runs of sequence {} cover {} of its {} tokens", replica,
                                  next, tokens));
  }
}

void check_explicit_runs(const PlanOptions& options, std::span<const PackedSequence> sequences) {
  if (options.home != HomeKind::kExplicit) return;
  if (options.explicit_runs.size() != sequences.size()) {
    throw ConfigError(fmt::format("explicit runs for {} sequences in a pool of {}",
                                  options.explicit_runs.size(), sequences.size()));
  }
  const std::size_t parts = at(options.cp / options.tp);
  for (std::size_t replica = 0; replica < sequences.size(); ++replica) {
    if (options.explicit_runs[replica].size() != parts) {
      throw ConfigError(fmt::format("explicit runs of sequence {} have {} parts: CP / TP is {}",
                                    replica, options.explicit_runs[replica].size(), parts));
    }
    check_explicit_sequence(options.explicit_runs[replica], sequences[replica].tokens,
                            static_cast<std::int64_t>(replica));
  }
}

// A run of a part, placed by its tokens so that a sweep along the sequence meets them in order.
struct PlacedRun {
  TokenRange tokens;
  std::int32_t part = 0;
  std::int64_t row = 0;
};

std::vector<PlacedRun> runs_in_token_order(const HomeLayout& layout, std::int32_t replica) {
  std::vector<PlacedRun> placed;
  const std::int32_t first = replica * layout.parts_per_sequence;
  for (std::int32_t part = first; part < first + layout.parts_per_sequence; ++part) {
    std::int64_t row = 0;
    for (const TokenRange run : layout.parts[at(part)].runs) {
      placed.push_back({run, part, row});
      row += run.size();
    }
  }
  std::sort(placed.begin(), placed.end(),
            [](const PlacedRun& a, const PlacedRun& b) { return a.tokens.begin < b.tokens.begin; });
  return placed;
}

// Cuts the samples of one sequence at the runs' ends; `run` advances with the tokens, so the sweep
// is linear.
void append_samples(HomeLayout& layout, const PackedSequence& sequence, std::int32_t replica) {
  const std::vector<PlacedRun> runs = runs_in_token_order(layout, replica);
  std::size_t run = 0;
  std::int64_t begin = 0;
  for (const std::int64_t tokens : sequence.sample_tokens) {
    PoolSample sample{replica, begin, tokens, static_cast<std::int32_t>(layout.fragments.size()),
                      0};
    for (std::int64_t token = begin; token < begin + tokens;) {
      while (runs[run].tokens.end <= token) ++run;
      const std::int64_t end = std::min(runs[run].tokens.end, begin + tokens);
      layout.fragments.push_back({static_cast<std::int32_t>(layout.samples.size()),
                                  runs[run].part,
                                  {token - begin, end - begin},
                                  runs[run].row + token - runs[run].tokens.begin});
      token = end;
    }
    sample.end_fragment = static_cast<std::int32_t>(layout.fragments.size());
    layout.samples.push_back(sample);
    begin += tokens;
  }
}

}  // namespace

HomeLayout make_home_layout(const PlanOptions& options, std::span<const PackedSequence> sequences) {
  check_sequences(options, sequences);
  check_explicit_runs(options, sequences);
  HomeLayout layout;
  layout.tp = options.tp;
  layout.parts_per_sequence = options.cp / options.tp;
  std::size_t samples = 0;
  for (const PackedSequence& sequence : sequences) samples += sequence.sample_tokens.size();
  layout.samples.reserve(samples);
  layout.fragments.reserve(samples + sequences.size() * 2 * at(layout.parts_per_sequence));
  for (std::size_t replica = 0; replica < sequences.size(); ++replica) {
    const auto r = static_cast<std::int32_t>(replica);
    for (std::int32_t index = 0; index < layout.parts_per_sequence; ++index) {
      layout.parts.push_back(make_part(options, sequences[replica], r, index));
    }
    append_samples(layout, sequences[replica], r);
  }
  return layout;
}

}  // namespace libra
