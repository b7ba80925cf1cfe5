#include "libra/cost/attention_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "libra/base/error.h"

namespace libra {
namespace {

void check_in_range(std::string_view field, std::int32_t value, std::int32_t most) {
  if (value >= 1 && value <= most) return;
  throw ConfigError(fmt::format("{} is {}: must be in [1, {}]; nearest legal value {}", field,
                                value, most, std::clamp(value, 1, most)));
}

// The divisor of `number` next to `wanted`; of two equally near, the smaller.
std::int32_t nearest_divisor(std::int32_t number, std::int32_t wanted) {
  std::int32_t nearest = 1;
  for (std::int32_t divisor = 2; divisor <= number; ++divisor) {
    const bool nearer = std::abs(divisor - wanted) < std::abs(nearest - wanted);
    if (number % divisor == 0 && nearer) nearest = divisor;
  }
  return nearest;
}

}  // namespace

void validate(const AttentionShape& shape) {
  check_in_range("q_heads", shape.q_heads, kMaxHeads);
  check_in_range("kv_heads", shape.kv_heads, kMaxHeads);
  check_in_range("head_dim", shape.head_dim, kMaxHeadDim);
  check_in_range("value_dim", shape.value_dim, kMaxHeadDim);
  if (shape.q_heads % shape.kv_heads == 0) return;
  throw ConfigError(
      fmt::format("kv_heads {} does not divide q_heads {}: kv_heads must divide q_heads; nearest "
                  "legal value {}",
                  shape.kv_heads, shape.q_heads, nearest_divisor(shape.q_heads, shape.kv_heads)));
}

}  // namespace libra
