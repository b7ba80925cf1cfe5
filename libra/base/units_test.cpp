#include "libra/base/units.h"

#include <gtest/gtest.h>

#include "libra/base/error.h"

namespace libra {
namespace {

TEST(ParseSize, TakesWholeNumbersAndBinarySuffixes) {
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("1000"), 1000);
  EXPECT_EQ(parse_size("256K"), 262144);
  EXPECT_EQ(parse_size("1m"), 1048576);
}

TEST(ParseSize, RefusesEverythingElseAndRepeatsIt) {
  for (const char* bad : {"", "K", "-1", "1.5K", "1G", "12 K", "0x10", "9223372036854775807K",
                          "99999999999999999999"}) {
    EXPECT_THROW(parse_size(bad), ConfigError) << bad;
  }
  try {
    parse_size("12Q");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("12Q"), std::string::npos);
  }
}

TEST(FormatSize, IsTheInverseOfParseSize) {
  for (const std::int64_t value : {0L, 1L, 1000L, 1024L, 262144L, 1048576L, 1048577L}) {
    EXPECT_EQ(parse_size(format_size(value)), value);
  }
  EXPECT_EQ(format_size(262144), "256K");
}

TEST(FormatBytes, KeepsThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(45'800'000'000), "45.8 GB");
  EXPECT_EQ(format_bytes(999'999), "1.00 MB");
}

}  // namespace
}  // namespace libra
