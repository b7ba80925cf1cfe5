#include "libra/plan/rules.h"

#include <gtest/gtest.h>

#include "libra/base/error.h"

namespace libra {
namespace {

TEST(Rules, NearestLegalGivesTheClosestOnEitherSide) {
  const auto divides_12 = [](std::int64_t value) { return 12 % value == 0; };
  EXPECT_EQ(nearest_legal(5, 12, divides_12), "4 or 6");
  EXPECT_EQ(nearest_legal(6, 12, divides_12), "6");
  EXPECT_EQ(nearest_legal(100, 12, divides_12), "12");
  EXPECT_EQ(nearest_legal(-3, 12, divides_12), "1");
  EXPECT_EQ(nearest_legal(5, 12, [](std::int64_t) { return false; }), "none");
}

TEST(Rules, HoldOrThrow) {
  EXPECT_NO_THROW(require_positive("x", 1));
  EXPECT_THROW(require_positive("x", 0), ConfigError);
  EXPECT_NO_THROW(require_at_most("x", 3, 3));
  EXPECT_THROW(require_at_most("x", 4, 3), ConfigError);
  EXPECT_NO_THROW(require_divides("a", 3, "b", 12));
  EXPECT_THROW(require_divides("a", 5, "b", 12), ConfigError);
}

}  // namespace
}  // namespace libra
