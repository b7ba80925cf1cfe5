#include "libra/cli/length_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "libra/base/error.h"
#include "libra/base/units.h"

namespace libra::cli {

std::int64_t LengthScale::operator()(std::int64_t length) const {
  if (length == 0) return 0;
  // In parts, so that the product stays within 64 bits.
  const std::int64_t scaled =
      length / denominator * numerator + length % denominator * numerator / denominator;
  return std::max<std::int64_t>(scaled, 1);
}

std::string LengthScale::text() const { return fmt::format("{}/{}", numerator, denominator); }

LengthScale parse_length_scale(const std::string& text) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const std::size_t slash = text.find('/');
  const LengthScale scale =
      slash == std::string::npos
          ? LengthScale{1, parse_size(text)}
          : LengthScale{parse_size(text.substr(0, slash)), parse_size(text.substr(slash + 1))};
  if (scale.numerator < 1 || scale.numerator > scale.denominator || scale.denominator > kMost) {
    throw ConfigError(
        fmt::format("'{}' does not make lengths shorter: write a fraction such as 1/128", text));
  }
  const std::int64_t common = std::gcd(scale.numerator, scale.denominator);
  return {scale.numerator / common, scale.denominator / common};
}

std::vector<PackedSequence> scale_sequences(std::vector<PackedSequence> sequences,
                                            const LengthScale& scale) {
  std::int64_t budget = 0;
  for (PackedSequence& sequence : sequences) {
    std::int64_t used = 0;
    for (std::int64_t& tokens : sequence.sample_tokens) used += tokens = scale(tokens);
    budget = std::max({budget, used, scale(sequence.tokens)});
  }
  for (PackedSequence& sequence : sequences) sequence.tokens = budget;
  return sequences;
}

}  // namespace libra::cli
