#include "libra/corpus/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace libra {
namespace {

constexpr std::int64_t kDraws = 1'000'000;
constexpr double kErrors = 5;  // standard errors allowed: a false alarm in 1.7 million seeds

class Synthetic : public testing::TestWithParam<const char*> {
 protected:
  SyntheticModel model = synthetic_model(GetParam());
  std::vector<std::int64_t> lengths = draw_lengths(model, kDraws, 20'260'101);

  template <typename Predicate>
  double share_of(Predicate predicate) const {
    const auto count = std::count_if(lengths.begin(), lengths.end(), predicate);
    return static_cast<double>(count) / static_cast<double>(kDraws);
  }
};

TEST_P(Synthetic, HalfOfAllDocumentsAreBelowTheMedian) {
  const double below = share_of([](std::int64_t tokens) { return tokens < 644; });
  const double above = share_of([](std::int64_t tokens) { return tokens > 644; });
  const double error = 0.5 / std::sqrt(static_cast<double>(kDraws));
  EXPECT_LT(below, 0.5 + kErrors * error);
  EXPECT_LT(above, 0.5 + kErrors * error);
  EXPECT_LT(1 - below - above, 0.002);  // the few at 644 itself, so the two above are two-sided
}

TEST_P(Synthetic, LengthsAreBetweenOneAndTheMaximum) {
  const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
  EXPECT_GE(*shortest, 1);
  EXPECT_LE(static_cast<double>(*longest), model.max_tokens);
  EXPECT_GT(static_cast<double>(*longest), 0.9 * model.max_tokens);
}

// Above the tail's begin the body has almost nothing: its share there is counted in exactly.
TEST_P(Synthetic, TheTailHasItsShareAndItsExponent) {
  const auto body_above = [&](double tokens) {
    return 0.5 *
           std::erfc((std::log(tokens) - body_mu(model)) / (model.body_sigma * std::sqrt(2.0)));
  };
  const auto pareto_above = [&](double tokens) {
    const double a = model.tail_exponent;
    const double last = std::pow(model.tail_min / model.max_tokens, a);
    return (std::pow(model.tail_min / tokens, a) - last) / (1 - last);
  };
  for (const double factor : {1.0, 1.5, 2.0, 4.0}) {
    const double limit = factor * model.tail_min - 0.5;  // between two whole numbers
    const double wanted = model.tail_share * std::min(1.0, pareto_above(limit)) +
                          (1 - model.tail_share) * body_above(limit);
    const double found =
        share_of([limit](std::int64_t tokens) { return static_cast<double>(tokens) > limit; });
    const double error = std::sqrt(wanted * (1 - wanted) / static_cast<double>(kDraws));
    EXPECT_NEAR(found, wanted, kErrors * error) << "above " << limit;
  }
}

TEST_P(Synthetic, TheBodyHasItsWidth) {
  // A quarter of the body lies below exp(mu - 0.67449 sigma); all of the tail lies above.
  const double quartile = std::exp(body_mu(model) - 0.6744897501960817 * model.body_sigma);
  const double found = share_of([quartile](std::int64_t tokens) {
    return static_cast<double>(tokens) < std::round(quartile);
  });
  // Rounding moves the edge by at most half a token, at the body's density there.
  const double density = std::exp(-0.5 * 0.6744897501960817 * 0.6744897501960817) /
                         (std::sqrt(2 * M_PI) * model.body_sigma * quartile);
  const double error = std::sqrt(0.25 * 0.75 / static_cast<double>(kDraws));
  EXPECT_NEAR(found, 0.25 * (1 - model.tail_share), kErrors * error + density);
}

INSTANTIATE_TEST_SUITE_P(Models, Synthetic, testing::Values("paper-256k", "paper-1m"),
                         [](const auto& test) {
                           return std::string(test.param) == "paper-1m" ? "Paper1M" : "Paper256K";
                         });

TEST(SyntheticModel, WithoutATailTheBodyHasTheMedian) {
  EXPECT_NEAR(body_mu({644, 0.7, 0, 1, 16384, 262144}), std::log(644.0), 1e-12);
}

TEST(SyntheticModel, ATailPushesTheBodyDown) {
  EXPECT_LT(body_mu({644, 0.7, 0.1, 1, 16384, 262144}), std::log(644.0));
}

}  // namespace
}  // namespace libra
