#include "libra/plan/validate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/plan_fields.h"
#include "libra/plan/random_plans.h"

namespace libra {
namespace {

using ::testing::HasSubstr;

PoolPlan random_plan(std::uint64_t seed) {
  auto [options, sequences] = testing::random_problem(seed, 80);
  return make_plan(options, sequences);
}

std::string report(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& violation : violations)
    text += violation.rule + ": " + violation.detail + "\n";
  return text;
}

TEST(Validate, FindsNothingInPlansThatWereMade) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = random_plan(seed);
    ASSERT_EQ(report(validate(plan)), "");
    EXPECT_NO_THROW(require_valid(plan));
  }
}

// visit(name, number) for every number that was derived or decided.
template <typename Visit>
void visit_numbers(PoolPlan& plan, const Visit& visit) {
  visit("layout.tp", plan.layout.tp);
  visit("layout.parts_per_sequence", plan.layout.parts_per_sequence);
  for (TokenPart& part : plan.layout.parts) {
    visit("part.replica", part.replica);
    visit("part.rows", part.rows);
    for (TokenRange& run : part.runs) {
      visit("run.begin", run.begin);
      visit("run.end", run.end);
    }
  }
  for (PoolSample& sample : plan.layout.samples) {
    visit("sample.replica", sample.replica);
    visit("sample.begin", sample.begin);
    visit("sample.tokens", sample.tokens);
    visit("sample.first_fragment", sample.first_fragment);
    visit("sample.end_fragment", sample.end_fragment);
  }
  for (Fragment& fragment : plan.layout.fragments) {
    visit("fragment.sample", fragment.sample);
    visit("fragment.part", fragment.part);
    visit("fragment.begin", fragment.tokens.begin);
    visit("fragment.end", fragment.tokens.end);
    visit("fragment.row", fragment.row);
  }
  visit("tiling.head_shards", plan.tiling.head_shards);
  visit("tiling.shards_per_home", plan.tiling.shards_per_home);
  visit("tiling.tp", plan.tiling.tp);
  for (Piece& piece : plan.tiling.pieces) {
    visit("piece.sample", piece.sample);
    visit("piece.begin", piece.queries.begin);
    visit("piece.end", piece.queries.end);
    visit("piece.row", piece.row);
  }
  for (Block& block : plan.tiling.blocks) {
    visit("block.part", block.part);
    visit("block.first_piece", block.first_piece);
    visit("block.end_piece", block.end_piece);
    visit("block.tokens", block.tokens);
    visit("block.cost", block.cost);
  }
  for (std::int32_t& worker : plan.placement.destination) visit("destination", worker);
  for (std::int64_t& load : plan.placement.load) visit("load", load);
  visit("cap", plan.placement.cap);
  for (std::int64_t& row : plan.exchange.tile_arena_row) visit("tile_arena_row", row);
  for (KvFetch& fetch : plan.exchange.fetches) {
    visit("fetch.destination", fetch.destination);
    visit("fetch.kv_shard", fetch.kv_shard);
    visit("fetch.sample", fetch.sample);
    visit("fetch.tokens", fetch.tokens);
    visit("fetch.arena_row", fetch.arena_row);
  }
  for (auto* moves : {&plan.exchange.q_moves, &plan.exchange.kv_moves, &plan.exchange.kv_copies}) {
    for (RowMove& move : *moves) {
      visit("move.from", move.from);
      visit("move.to", move.to);
      visit("move.shard", move.shard);
      visit("move.round", move.round);
      visit("move.from_row", move.from_row);
      visit("move.to_row", move.to_row);
      visit("move.rows", move.rows);
    }
  }
  for (std::int64_t& rows : plan.exchange.q_arena_rows) visit("q_arena_rows", rows);
  for (std::int64_t& rows : plan.exchange.kv_arena_rows) visit("kv_arena_rows", rows);
}

// visit(name, list) for every list that was derived or decided.
template <typename Visit>
void visit_lists(PoolPlan& plan, const Visit& visit) {
  visit("parts", plan.layout.parts);
  for (TokenPart& part : plan.layout.parts) visit("runs", part.runs);
  visit("samples", plan.layout.samples);
  visit("fragments", plan.layout.fragments);
  visit("pieces", plan.tiling.pieces);
  visit("blocks", plan.tiling.blocks);
  visit("destination", plan.placement.destination);
  visit("load", plan.placement.load);
  visit("tile_arena_row", plan.exchange.tile_arena_row);
  visit("fetches", plan.exchange.fetches);
  visit("q_moves", plan.exchange.q_moves);
  visit("kv_moves", plan.exchange.kv_moves);
  visit("kv_copies", plan.exchange.kv_copies);
  visit("q_arena_rows", plan.exchange.q_arena_rows);
  visit("kv_arena_rows", plan.exchange.kv_arena_rows);
}

template <typename Int>
Int another_value(Rng& rng, Int value) {
  using Limits = std::numeric_limits<Int>;
  const Int near = static_cast<Int>(rng.below(20));
  switch (rng.below(8)) {
    case 0:
      return static_cast<Int>(value - 1);
    case 1:
      return static_cast<Int>(value + 1);
    case 2:
      return 0;
    case 3:
      return Limits::max();
    case 4:
      return Limits::min();
    case 5:
      return static_cast<Int>(Limits::max() - near);
    case 6:
      return static_cast<Int>(-near);
    default:
      return near;
  }
}

template <typename Item>
void change_list(Rng& rng, std::vector<Item>& list) {
  if (list.empty()) {
    list.emplace_back();
    return;
  }
  const auto one = static_cast<std::ptrdiff_t>(rng.below(list.size()));
  const auto other = rng.below(list.size());
  switch (rng.below(5)) {
    case 0:
      list.erase(list.begin() + one);
      break;
    case 1:
      list.insert(list.begin() + one, Item(list[other]));
      break;
    case 2:
      list.clear();
      break;
    case 3:
      list.emplace_back();
      break;
    default:
      std::swap(list[at(one)], list[other]);
  }
}

// The order of moves means nothing, and a move of no rows does nothing.
PoolPlan without_order(PoolPlan plan) {
  for (auto* moves : {&plan.exchange.q_moves, &plan.exchange.kv_moves, &plan.exchange.kv_copies}) {
    const auto key = [](const RowMove& m) {
      return std::tie(m.to, m.to_row, m.from, m.from_row, m.shard, m.rows);
    };
    moves->erase(std::remove_if(moves->begin(), moves->end(),
                                [](const RowMove& move) { return move.rows == 0; }),
                 moves->end());
    std::sort(moves->begin(), moves->end(),
              [&key](const RowMove& a, const RowMove& b) { return key(a) < key(b); });
  }
  return plan;
}

std::string expect_named_or_same(const PoolPlan& mutant, const PoolPlan& plan,
                                 const std::string& what) {
  const std::vector<Violation> violations = validate(mutant);
  if (violations.empty() && without_order(mutant) != without_order(plan))
    ADD_FAILURE() << what << " was changed and is not named";
  return violations.empty() ? "" : violations[0].rule;
}

TEST(Validate, NamesEveryChangedNumber) {
  int named = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, 1);
    PoolPlan plan = random_plan(seed);
    std::uint64_t numbers = 0;
    visit_numbers(plan, [&](const char*, auto&) { ++numbers; });
    for (int i = 0; i < 60; ++i) {
      PoolPlan mutant = plan;
      std::uint64_t left = rng.below(numbers);
      std::string what;
      visit_numbers(mutant, [&](const char* name, auto& number) {
        if (left-- != 0) return;
        const auto before = number;
        number = another_value(rng, number);
        what = fmt::format("{}, {} to {},", name, before, number);
      });
      named += expect_named_or_same(mutant, plan, what).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(named, 6000);
}

TEST(Validate, NamesEveryChangedList) {
  int named = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, 2);
    PoolPlan plan = random_plan(seed);
    std::uint64_t lists = 0;
    visit_lists(plan, [&](const char*, auto&) { ++lists; });
    for (int i = 0; i < 40; ++i) {
      PoolPlan mutant = plan;
      std::uint64_t left = rng.below(lists);
      std::string what;
      visit_lists(mutant, [&](const char* name, auto& list) {
        if (left-- != 0) return;
        change_list(rng, list);
        what = name;
      });
      named += expect_named_or_same(mutant, plan, what).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(named, 2000);
}

// A plan whose inputs were changed is still a plan if it is what these inputs and the old decisions
// give.
void expect_named_or_what_its_inputs_give(const PoolPlan& mutant, const std::string& what) {
  if (!validate(mutant).empty()) return;
  std::vector<std::int64_t> costs;
  for (const Block& block : mutant.tiling.blocks) costs.push_back(block.cost);
  const PoolPlan again =
      rebuild_plan(mutant.options, mutant.sequences, costs, mutant.placement.destination);
  if (again != mutant) ADD_FAILURE() << what << " was changed and is not named";
}

TEST(Validate, NamesOptionsThatThePlanWasNotMadeWith) {
  std::uint64_t options = 0;
  const PlanOptions counted;
  visit_options(counted, [&](const char*, auto) { ++options; });
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, 3);
    const PoolPlan plan = random_plan(seed);
    for (int i = 0; i < 60; ++i) {
      PoolPlan mutant = plan;
      std::uint64_t left = rng.below(options);
      std::string what;
      visit_options(mutant.options, [&](const char* name, auto& value) {
        if (left-- != 0) return;
        using Field = std::decay_t<decltype(value)>;
        if constexpr (std::is_enum_v<Field>) {
          value = static_cast<Field>(
              rng.below(4) %
              (std::is_same_v<Field, Fetch> || std::is_same_v<Field, BackwardMode> ? 2 : 4));
        } else if constexpr (std::is_same_v<Field, bool>) {
          value = !value;
        } else {
          value = another_value(rng, value);
        }
        what = name;
      });
      expect_named_or_what_its_inputs_give(mutant, what);
    }
  }
}

TEST(Validate, NamesSequencesThatThePlanWasNotMadeFor) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, 4);
    const PoolPlan plan = random_plan(seed);
    for (int i = 0; i < 40; ++i) {
      PoolPlan mutant = plan;
      PackedSequence& sequence = mutant.sequences[rng.below(mutant.sequences.size())];
      if (rng.below(4) == 0) {
        change_list(rng, mutant.sequences);
      } else if (rng.below(3) == 0 || sequence.sample_tokens.empty()) {
        sequence.tokens = another_value(rng, sequence.tokens);
      } else if (rng.below(2) == 0) {
        change_list(rng, sequence.sample_tokens);
      } else {
        std::int64_t& tokens = sequence.sample_tokens[rng.below(sequence.sample_tokens.size())];
        tokens = another_value(rng, tokens);
      }
      expect_named_or_what_its_inputs_give(mutant, "a sequence");
    }
  }
}

// One fault of each kind, and the promise that it breaks.
PoolPlan faulty_plan(const std::function<void(PoolPlan&)>& fault) {
  PlanOptions options;
  options.shape = {4, 2, 4, 4};
  options.cp = 2;
  options.chunks = 1;
  options.block_tokens = 10;
  options.placer = PlacerKind::kUlysses;
  PoolPlan plan = make_plan(options, {{40, {15, 25}}});
  fault(plan);
  return plan;
}

struct Fault {
  const char* rule;
  std::function<void(PoolPlan&)> make;
};

class Faults : public ::testing::TestWithParam<Fault> {};

TEST_P(Faults, AreNamedByTheirRule) {
  const std::vector<Violation> violations = validate(faulty_plan(GetParam().make));
  ASSERT_FALSE(violations.empty());
  EXPECT_EQ(violations[0].rule, GetParam().rule);
  EXPECT_THAT(report(violations), ::testing::Not(HasSubstr("\n\n")));
}

INSTANTIATE_TEST_SUITE_P(
    Validate, Faults,
    ::testing::Values(Fault{"options", [](PoolPlan& p) { p.options.chunks = 3; }},
                      Fault{"options", [](PoolPlan& p) { p.sequences[0].sample_tokens[0] = -1; }},
                      Fault{"homes", [](PoolPlan& p) { p.options.home = HomeKind::kZigzagRow; }},
                      Fault{"homes", [](PoolPlan& p) { p.layout.parts[0].runs[0].end = 21; }},
                      Fault{"homes", [](PoolPlan& p) { p.layout.fragments.pop_back(); }},
                      Fault{"tiles", [](PoolPlan& p) { p.options.block_tokens = 5; }},
                      Fault{"tiles", [](PoolPlan& p) { p.tiling.pieces.pop_back(); }},
                      Fault{"tiles", [](PoolPlan& p) { p.tiling.blocks[0].cost = -1; }},
                      Fault{"placement", [](PoolPlan& p) { p.placement.destination[0] = 2; }},
                      Fault{"placement", [](PoolPlan& p) { p.placement.load[0] += 1; }},
                      Fault{"queries", [](PoolPlan& p) { p.exchange.q_moves.pop_back(); }},
                      Fault{"queries", [](PoolPlan& p) { p.exchange.tile_arena_row[1] += 1; }},
                      Fault{"keys", [](PoolPlan& p) { p.exchange.fetches[0].tokens -= 1; }},
                      Fault{"fetches", [](PoolPlan& p) { p.exchange.kv_moves[0].from_row += 1; }},
                      Fault{"fetches", [](PoolPlan& p) { p.exchange.kv_copies.clear(); }},
                      Fault{"fetches", [](PoolPlan& p) { p.exchange.kv_arena_rows[1] += 1; }}));

// Workers 2 and 3 share a node and need keys of workers 0 and 1; each brings in one's. kv_moves[1]
// is what 3 passes on, kv_moves[2] the first that crosses.
PoolPlan faulty_relay(const std::function<void(PoolPlan&)>& fault) {
  PlanOptions options;
  options.shape = {2, 2, 4, 4};
  options.cp = 4;
  options.head_shards = 1;
  options.chunks = 1;
  options.block_tokens = 10;
  options.placer = PlacerKind::kNone;
  options.gpus_per_node = 2;
  options.node_fetch = true;
  PoolPlan plan = make_plan(options, {{40, {40}}});
  fault(plan);
  return plan;
}

class RelayFaults : public ::testing::TestWithParam<std::function<void(PoolPlan&)>> {};

TEST_P(RelayFaults, AreNamed) {
  EXPECT_EQ(report(validate(faulty_relay([](PoolPlan&) {}))), "");
  const std::vector<Violation> violations = validate(faulty_relay(GetParam()));
  ASSERT_FALSE(violations.empty());
  EXPECT_EQ(violations[0].rule, "fetches");
}

void set_passed_on(PoolPlan& plan, const RowMove& move) { plan.exchange.kv_moves[1] = move; }

INSTANTIATE_TEST_SUITE_P(
    Validate, RelayFaults,
    ::testing::Values([](PoolPlan& p) { p.options.node_fetch = false; },
                      [](PoolPlan& p) { p.options.gpus_per_node = 4; },
                      [](PoolPlan& p) { p.exchange.kv_moves[1].round = 0; },
                      [](PoolPlan& p) { p.exchange.kv_moves[1].round = 2; },
                      [](PoolPlan& p) { p.exchange.kv_moves[1].round = -1; },
                      [](PoolPlan& p) { p.exchange.kv_moves[2].round = 1; },
                      [](PoolPlan& p) { p.exchange.kv_moves[1].from_row = 10; },
                      [](PoolPlan& p) { p.exchange.kv_moves[1].from_row = std::int64_t{1} << 61; },
                      [](PoolPlan& p) {
                        set_passed_on(p, {1, 2, 0, 1, 0, 0, 10});
                      },  // of another node
                      [](PoolPlan& p) {
                        set_passed_on(p, {-1, 2, 0, 1, 0, 0, 10});
                      },  // of nobody
                      [](PoolPlan& p) {
                        set_passed_on(p, {2, 3, 0, 1, 0, 0, 10});
                      },  // the wrong way round
                      [](PoolPlan& p) {
                        set_passed_on(p, {0, 2, 0, 0, 0, 0, 10});
                      },  // crosses twice
                      [](PoolPlan& p) {
                        p.exchange.kv_moves.erase(p.exchange.kv_moves.begin() + 1);
                      }));

TEST(Validate, RequireValidThrowsTheFirstViolation) {
  try {
    require_valid(faulty_plan([](PoolPlan& plan) { plan.exchange.q_moves.clear(); }));
    FAIL() << "accepted";
  } catch (const PlanError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'queries'"));
    EXPECT_THAT(error.what(), HasSubstr("1 violations in all"));
  }
}

}  // namespace
}  // namespace libra
