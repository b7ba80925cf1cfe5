#include "libra/base/fingerprint.h"

#include <gtest/gtest.h>

namespace libra {
namespace {

template <typename... Parts>
std::uint64_t of(const Parts&... parts) {
  Fingerprint fingerprint;
  (fingerprint.add(parts), ...);
  return fingerprint.value();
}

using Numbers = std::vector<std::int64_t>;

TEST(Fingerprint, SeesOrderAndGrouping) {
  EXPECT_NE(of(Numbers{1, 2}), of(Numbers{2, 1}));
  EXPECT_NE(of(Numbers{1}, Numbers{2}), of(Numbers{1, 2}));
  EXPECT_NE(of(Numbers{}), of(Numbers{0}));
}

TEST(Fingerprint, IsTheSameForTheSameInputOnEveryPlatform) {
  EXPECT_EQ(of(Numbers{1, 2, 3}), of(Numbers{1, 2, 3}));
  EXPECT_EQ(of(std::string_view("libra")), 13332056496280387237ULL);
}

}  // namespace
}  // namespace libra
