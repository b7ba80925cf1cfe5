#include "libra/corpus/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "libra/base/error.h"
#include "libra/base/rng.h"

namespace libra {
namespace {

struct NamedModel {
  std::string_view name;
  SyntheticModel model;
};

constexpr std::array<NamedModel, 2> kModels = {
    {{"paper-256k", {644, 0.7, 0.0045, 0.10, 16384, 262144}},
     {"paper-1m", {644, 1.0, 0.0035, 0.40, 32768, 1048576}}}};

// Keeps the draws apart from what else is made with the same seed, epochs' shuffles above all.
constexpr std::uint64_t kSyntheticStream = std::uint64_t{1} << 63;

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// By bisection: it runs once per corpus, and cannot fail.
double normal_quantile(double probability) {
  double low = -40;
  double high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (normal_cdf(middle) < probability ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

// The inverse of the truncated Pareto law's distribution function.
double tail_quantile(const SyntheticModel& model, double u) {
  const double beyond = std::pow(model.tail_min / model.max_tokens, model.tail_exponent);
  return model.tail_min * std::pow(1 - u * (1 - beyond), -1 / model.tail_exponent);
}

}  // namespace

SyntheticModel synthetic_model(std::string_view name) {
  for (const NamedModel& candidate : kModels) {
    if (candidate.name == name) return candidate.model;
  }
  throw ConfigError(
      fmt::format("no synthetic corpus '{}': the names are paper-256k and paper-1m", name));
}

// The tail lies above the median, so half of everything is in the body below it:
// (1 - tail_share) * Phi((ln median - mu) / sigma) = 1/2.
double body_mu(const SyntheticModel& model) {
  return std::log(model.median) - model.body_sigma * normal_quantile(0.5 / (1 - model.tail_share));
}

std::vector<std::int64_t> draw_lengths(const SyntheticModel& model, std::int64_t documents,
                                       std::uint64_t seed) {
  if (documents <= 0) {
    throw ConfigError(fmt::format("a synthetic corpus of {} documents: 1 or more", documents));
  }
  const double mu = body_mu(model);
  Rng rng(seed, kSyntheticStream);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(documents));
  for (std::int64_t& length : lengths) {
    const bool in_tail = rng.uniform() < model.tail_share;
    const double tokens = in_tail ? tail_quantile(model, rng.uniform())
                                  : std::exp(mu + model.body_sigma * rng.normal());
    length = std::llround(std::clamp(tokens, 1.0, model.max_tokens));
  }
  return lengths;
}

}  // namespace libra
