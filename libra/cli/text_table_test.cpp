#include "libra/cli/text_table.h"

#include <gtest/gtest.h>

namespace libra::cli {
namespace {

TEST(TextTableTest, FirstColumnIsLeftTheOthersAreRight) {
  TextTable table({"placer", "x"});
  table.add({"none", "12.5"});
  EXPECT_EQ(table.text(), "  placer     x\n  none    12.5\n");
}

TEST(TextTableTest, LinesHaveNoTrailingBlanks) {
  TextTable table({"a", ""});
  table.add({"b", "   "});
  EXPECT_EQ(table.text(), "  a\n  b\n");
}

TEST(TextTableTest, BarsAreProportionalAndSomethingIsNeverNothing) {
  EXPECT_EQ(bar(0, 8), "");
  EXPECT_EQ(bar(0.001, 8), "#");
  EXPECT_EQ(bar(0.5, 8), "####");
  EXPECT_EQ(bar(1, 8), "########");
  EXPECT_EQ(bar(7, 8), "########");
}

TEST(TextTableTest, ThousandsAreSetApart) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(with_commas(-123), "-123");
}

}  // namespace
}  // namespace libra::cli
