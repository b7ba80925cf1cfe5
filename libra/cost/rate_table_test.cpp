#include "libra/cost/rate_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "libra/base/error.h"

namespace libra {
namespace {

using testing::HasSubstr;

const RateGrid kGrid = {.queries = {512, 4096},
                        .keys = {644, 4096, 65536},
                        .heads = {4, 32},
                        .gflops = {100, 200, 300, 400, 500, 600,  //
                                   700, 800, 900, 1000, 1100, 1200}};

double rate(const RateTable& table, std::int64_t q, std::int64_t k, std::int64_t h) {
  return std::exp2(std::ldexp(static_cast<double>(table.log2_rate(q, k, h)), -24));
}

// Logarithms carry 2e-7, weights 2^-16 of an interval.
constexpr double kNodeError = 1e-6;
constexpr double kBetweenError = 1e-4;

TEST(RateTable, HasEveryNodesRate) {
  const RateTable table(kGrid);
  std::size_t index = 0;
  for (const std::int64_t h : kGrid.heads) {
    for (const std::int64_t q : kGrid.queries) {
      for (const std::int64_t k : kGrid.keys) {
        const double wanted = static_cast<double>(kGrid.gflops[index++]);
        EXPECT_NEAR(rate(table, q, k, h) / wanted, 1.0, kNodeError) << q << " " << k << " " << h;
      }
    }
  }
}

TEST(RateTable, IsTheGeometricMeanHalfwayBetweenNodesInEachLogarithm) {
  const RateTable table(kGrid);
  EXPECT_NEAR(rate(table, 512, 16384, 4) / std::sqrt(200.0 * 300.0), 1.0, kBetweenError);
  EXPECT_NEAR(rate(table, 1448, 4096, 4) / std::sqrt(200.0 * 500.0), 1.0, 2 * kBetweenError);
  EXPECT_NEAR(rate(table, 512, 4096, 8) / std::pow(200.0, 2.0 / 3) / std::pow(800.0, 1.0 / 3), 1.0,
              kBetweenError);
}

TEST(RateTable, KeepsTheEdgesRateOutsideTheGrid) {
  const RateTable table(kGrid);
  EXPECT_EQ(table.log2_rate(1, 1, 1), table.log2_rate(512, 644, 4));
  EXPECT_EQ(table.log2_rate(1 << 24, 1 << 24, 4096), table.log2_rate(4096, 65536, 32));
}

TEST(RateTable, TakesOneNodeAsAConstant) {
  const RateTable table({.queries = {8}, .keys = {8}, .heads = {1}, .gflops = {1024}});
  for (const std::int64_t size : {1, 8, 100}) {
    EXPECT_EQ(table.log2_rate(size, size, size), std::int64_t{10} << 24);
  }
}

TEST(RateTable, RefusesABrokenGridAndNamesTheField) {
  const auto complaint = [](auto&& damage) {
    RateGrid grid = kGrid;
    damage(grid);
    try {
      const RateTable table(grid);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(complaint([](RateGrid& g) { g.queries = {}; }), HasSubstr("queries must have"));
  EXPECT_THAT(complaint([](RateGrid& g) {
                g.keys = {1, 3, 2};
              }),
              HasSubstr("keys must rise: 2 after 3"));
  EXPECT_THAT(complaint([](RateGrid& g) { g.heads = {4, 4}; }), HasSubstr("heads must rise"));
  EXPECT_THAT(complaint([](RateGrid& g) { g.heads = {0, 4}; }), HasSubstr("heads has 0"));
  EXPECT_THAT(complaint([](RateGrid& g) { g.gflops.pop_back(); }),
              HasSubstr("tflops has 11 rates: must have 12"));
  EXPECT_THAT(complaint([](RateGrid& g) { g.gflops[3] = 0; }), HasSubstr("tflops has 0"));
}

}  // namespace
}  // namespace libra
