// Plan files of somebody who means harm: fingerprints that match, numbers that do not. Each is an
// error, or a plan that keeps every promise; then nothing is read or written out of bounds (with
// AddressSanitizer) and the results are those of plain attention.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/plan_binary.h"
#include "libra/plan/plan_fields.h"
#include "libra/plan/validate.h"
#include "libra/runtime/random_pools.h"
#include "tests/matrix_fraction.h"
#include "tests/pool_check.h"

namespace libra::testing {
namespace {

// What a file holds besides the fingerprint.
struct PlanFields {
  PlanOptions options;
  std::vector<PackedSequence> sequences;
  std::vector<std::int64_t> costs;
  std::vector<std::int32_t> destination;
};

PlanFields fields_of(const PoolPlan& plan) {
  PlanFields fields{plan.options, plan.sequences, {}, plan.placement.destination};
  fields.costs.reserve(plan.tiling.blocks.size());
  for (const Block& block : plan.tiling.blocks) fields.costs.push_back(block.cost);
  return fields;
}

// Every number of a file, as something that takes another one.
using Number = std::function<void(Rng&)>;

template <typename Int>
Int changed(Rng& rng, Int value) {
  using Limits = std::numeric_limits<Int>;
  switch (rng.below(8)) {
    case 0:
      return static_cast<Int>(value == Limits::max() ? 0 : value + 1);
    case 1:
      return static_cast<Int>(value == Limits::min() ? 0 : value - 1);
    case 2:
      return 0;
    case 3:
      return Limits::max();
    case 4:
      return Limits::min();
    case 5:
      return static_cast<Int>(value / 2);
    case 6:
      return static_cast<Int>(rng.below(64));
    default:
      return static_cast<Int>(rng.next());
  }
}

template <typename Int>
void add(std::vector<Number>& numbers, Int& number) {
  numbers.emplace_back([&number](Rng& rng) { number = changed(rng, number); });
}

template <typename Int>
void add(std::vector<Number>& numbers, std::vector<Int>& list) {
  for (Int& number : list) add(numbers, number);
  numbers.emplace_back([&list](Rng& rng) { list.insert(list.end(), rng.below(3), Int{1}); });
  numbers.emplace_back([&list](Rng& rng) { list.resize(rng.below(list.size() + 1)); });
}

void add_options(std::vector<Number>& numbers, PlanOptions& options) {
  visit_options(options, [&numbers](const char*, auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, bool>) {
      numbers.emplace_back([&field](Rng&) { field = !field; });
    } else if constexpr (std::is_enum_v<Field>) {  // a reader refuses what has no name
      numbers.emplace_back([&field](Rng& rng) { field = static_cast<Field>(rng.below(2)); });
    } else {
      add(numbers, field);
    }
  });
  for (auto& parts : options.explicit_runs) {
    numbers.emplace_back([&parts](Rng& rng) { parts.resize(rng.below(parts.size() + 2)); });
    for (auto& runs : parts) {
      numbers.emplace_back([&runs](Rng& rng) { runs.resize(rng.below(runs.size() + 2)); });
      for (TokenRange& run : runs) {
        add(numbers, run.begin);
        add(numbers, run.end);
      }
    }
  }
}

std::vector<Number> numbers_of(PlanFields& fields) {
  std::vector<Number> numbers;
  // As often as all others together, or they would hardly ever be met.
  add(numbers, fields.costs);
  add(numbers, fields.destination);
  const std::size_t often = numbers.size() / 40 + 1;
  for (std::size_t i = 0; i < often; ++i) {
    add_options(numbers, fields.options);
    for (PackedSequence& sequence : fields.sequences) {
      add(numbers, sequence.tokens);
      add(numbers, sequence.sample_tokens);
    }
  }
  return numbers;
}

// The plan that a reader makes of the fields once up to three of them were changed; nothing if it
// refuses them.
std::optional<PoolPlan> mutated(const PoolPlan& plan, Rng& rng) {
  PlanFields fields = fields_of(plan);
  const std::uint64_t changes = 1 + rng.below(3);
  for (std::uint64_t i = 0; i < changes; ++i) {
    const std::vector<Number> numbers = numbers_of(fields);  // lists may have changed
    numbers[rng.below(numbers.size())](rng);
  }
  try {
    return rebuild_plan(fields.options, fields.sequences, fields.costs, fields.destination);
  } catch (const PlanError&) {
    return std::nullopt;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

bool is_small(const PoolPlan& plan) {
  std::int64_t tokens = 0;
  for (const PackedSequence& sequence : plan.sequences) tokens += sequence.tokens;
  const AttentionShape& shape = plan.options.shape;
  return plan.workers() <= 8 && tokens <= 300 && shape.head_dim <= 32 && shape.value_dim <= 32;
}

TEST(HostilePlan, IsRefusedOrKeepsEveryPromise) {
  constexpr std::uint64_t kPlans = 400;
  constexpr int kMutations = 20;
  int refused = 0, accepted = 0, run = 0;
  for (std::uint64_t seed = 0; seed < kPlans;
       seed += static_cast<std::uint64_t>(matrix_fraction())) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, 3);
    const PoolPlan plan = random_plan(seed, 60);
    for (int i = 0; i < kMutations; ++i) {
      std::optional<PoolPlan> found = mutated(plan, rng);
      refused += found ? 0 : 1;
      if (!found) continue;
      ++accepted;
      ASSERT_TRUE(validate(*found).empty()) << validate(*found).front().detail;
      if (++run % 10 != 0 || !is_small(*found)) continue;
      EXPECT_EQ(decode_plan(encode_plan(*found)), *found);
      found->options.storage = DType::kFp64;
      expect_exact(*found, seed);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 1000 / matrix_fraction());
  EXPECT_GT(accepted, 1000 / matrix_fraction());
}

}  // namespace
}  // namespace libra::testing
