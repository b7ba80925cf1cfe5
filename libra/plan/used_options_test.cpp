#include "libra/plan/used_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "libra/base/error.h"

namespace libra {
namespace {

using Placers = std::vector<PlacerKind>;

std::string complaint(const PlanOptions& options, bool for_cluster, const Placers& placers) {
  try {
    check_used(options, for_cluster, placers, option_name);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

PlanOptions searching() {
  PlanOptions options;
  options.search_us = 5;
  return options;
}

PlanOptions weighing() {
  PlanOptions options;
  options.inter_node_weight = 1;
  return options;
}

PlanOptions fetching() {
  PlanOptions options;
  options.node_fetch = true;
  return options;
}

TEST(UsedOptions, AreThoseOfOnePlacerAtLeast) {
  constexpr PlacerKind kBalanced = PlacerKind::kBalanced;
  constexpr PlacerKind kReserve = PlacerKind::kReserve;
  for (const PlacerKind placer :
       {PlacerKind::kNone, PlacerKind::kUlysses, PlacerKind::kPaper, kReserve, kBalanced}) {
    SCOPED_TRACE(placer_name(placer));
    const bool by_links = placer == kReserve || placer == kBalanced;
    EXPECT_EQ(complaint({}, false, {placer}), "");
    EXPECT_EQ(complaint(searching(), false, {placer}).empty(), placer == kBalanced);
    EXPECT_EQ(complaint(weighing(), false, {placer}).empty(), placer == kBalanced);
    EXPECT_EQ(complaint(fetching(), false, {placer}).empty(), by_links);
    EXPECT_EQ(complaint({}, true, {placer}).empty(), by_links);
    EXPECT_EQ(complaint(searching(), true, {placer, kBalanced}), "");
  }
}

TEST(UsedOptions, AreNamedWithWhatTheyAreForAsUsersSpellThem) {
  EXPECT_EQ(complaint(searching(), false, {PlacerKind::kNone, PlacerKind::kPaper}),
            "search_us is for placer balanced, not none, paper: use that placer, or leave "
            "search_us out");
  try {
    check_used(fetching(), false, Placers{PlacerKind::kUlysses},
               [](std::string_view name) { return "--" + std::string(name); });
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("--node_fetch is for placer balanced or"));
  }
}

}  // namespace
}  // namespace libra
