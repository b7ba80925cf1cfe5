// Document lengths drawn from distributions that meet the statistics which the Libra paper
// publishes of its two production corpora.
//
// A document is, with probability `tail_share`, from a Pareto law of exponent `tail_exponent`
// truncated to [tail_min, max_tokens], and otherwise from a lognormal body of width `body_sigma`
// capped at max_tokens. The median of the whole is `median`; the tail carries most attention work.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace libra {

struct SyntheticModel {
  double median = 0;         ///< tokens, of body and tail together; below tail_min
  double body_sigma = 0;     ///< standard deviation of the logarithm of body lengths
  double tail_share = 0;     ///< in [0, 0.5)
  double tail_exponent = 0;  ///< above 0; smaller is heavier
  double tail_min = 0;       ///< tokens
  double max_tokens = 0;     ///< tokens
};

/// "paper-256k" or "paper-1m". Throws ConfigError that lists the names.
SyntheticModel synthetic_model(std::string_view name);

/// The mean of the logarithm of body lengths that makes the overall median what the model says.
double body_mu(const SyntheticModel& model);

/// `documents` lengths of at least one token. Equal for equal seeds (up to the last bit of libm's
/// functions). Throws ConfigError if documents is not positive.
std::vector<std::int64_t> draw_lengths(const SyntheticModel& model, std::int64_t documents,
                                       std::uint64_t seed);

}  // namespace libra
