#include "libra/plan/pool_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "libra/base/error.h"

namespace libra {
namespace {

void check_sequence(const PackedSequence& sequence, std::size_t replica) {
  if (sequence.tokens < 0 || sequence.tokens > kMaxSequenceTokens) {
    throw ConfigError(fmt::format("sequence {} has {} tokens: it may have 0 to {}", replica,
                                  sequence.tokens, kMaxSequenceTokens));
  }
  std::int64_t left = sequence.tokens;
  for (const std::int64_t tokens : sequence.sample_tokens) {
    if (tokens < 0)
      throw ConfigError(fmt::format("sequence {} has a sample of {} tokens", replica, tokens));
    if (tokens > left) {
      throw ConfigError(fmt::format("the samples of sequence {} are longer than its {} tokens",
                                    replica, sequence.tokens));
    }
    left -= tokens;
  }
}

void require_below(std::string_view what, double value, double limit) {
  if (value < limit) return;
  throw ConfigError(
      fmt::format("the pool has {:.2g} {}: it must be less than {:.2g}", value, what, limit));
}

}  // namespace

// In floating point, so that the check itself can't overflow; the limits leave room for rounding.
void check_sequences(const PlanOptions& options, std::span<const PackedSequence> sequences) {
  double tokens = 0;
  double samples = 0;
  double pairs = 0;
  for (std::size_t replica = 0; replica < sequences.size(); ++replica) {
    check_sequence(sequences[replica], replica);
    const auto of_sequence = static_cast<double>(sequences[replica].tokens);
    tokens += of_sequence;
    samples += static_cast<double>(sequences[replica].sample_tokens.size());
    pairs += of_sequence * (of_sequence + 1) / 2;
  }
  const double workers = static_cast<double>(sequences.size()) * options.cp;
  const double blocks = tokens / static_cast<double>(options.block_tokens) + workers;
  constexpr double kMaxElementBytes = 8;
  const double row_bytes = kMaxElementBytes * options.shape.q_heads *
                           (double{1} * options.shape.head_dim + options.shape.value_dim);
  constexpr double kMaxIndex = 0x1p30;
  require_below("tiles", blocks * options.head_shards, kMaxIndex);
  require_below("KV groups", samples * options.head_shards, kMaxIndex);
  require_below("fragments of samples", std::min(tokens, samples * 2 * options.cp) + workers,
                kMaxIndex);
  require_below("query-key pairs x heads", pairs * options.shape.q_heads,
                static_cast<double>(kMaxTotalCost));
  require_below("bytes of Q, K, V and O if every worker held all", tokens * row_bytes * workers,
                0x1p60);
}

}  // namespace libra
