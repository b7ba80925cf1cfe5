#include "libra/cost/attention_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "libra/base/error.h"

namespace libra {
namespace {

using testing::HasSubstr;

std::string complaint(const AttentionShape& shape) {
  try {
    validate(shape);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(QueryKeyPairs, CountsTheCausalTriangleAndEveryTrapezeInIt) {
  for (std::int64_t begin = 0; begin <= 12; ++begin) {
    std::int64_t counted = 0;
    for (std::int64_t end = begin; end <= 12; ++end) {
      EXPECT_EQ(query_key_pairs({begin, end}), counted) << begin << " " << end;
      counted += end + 1;
    }
  }
  EXPECT_EQ(query_key_pairs({5, 3}), 0);
}

TEST(QueryKeyPairs, AreExactForAMillionTokens) {
  EXPECT_EQ(query_key_pairs({0, 1048576}), 549756338176);
}

TEST(Flops, CountFourDPerPairAndHeadForwardAndTwoAndAHalfTimesThatBackward) {
  EXPECT_EQ(forward_flops({.head_dim = 128, .value_dim = 128}, 10), 5120.0);
  EXPECT_EQ(forward_flops({.head_dim = 192, .value_dim = 128}, 10), 6400.0);
  EXPECT_EQ(backward_flops({.head_dim = 128, .value_dim = 128}, 10), 12800.0);
}

TEST(ValidateAttentionShape, AcceptsTheHeadCountsAndDimensionsInUse) {
  const AttentionShape shapes[] = {{},
                                   {.q_heads = 40, .kv_heads = 8},
                                   {.q_heads = 64, .kv_heads = 64},
                                   {.q_heads = 7, .kv_heads = 1},
                                   {.head_dim = 192, .value_dim = 128},
                                   {.q_heads = 1, .kv_heads = 1, .head_dim = 1, .value_dim = 1},
                                   {.q_heads = 4096, .head_dim = 1024, .value_dim = 1024}};
  for (const AttentionShape& shape : shapes) EXPECT_EQ(complaint(shape), "");
}

TEST(ValidateAttentionShape, NamesTheRuleAndTheNearestLegalValue) {
  EXPECT_EQ(
      complaint({.q_heads = 32, .kv_heads = 5}),
      "kv_heads 5 does not divide q_heads 32: kv_heads must divide q_heads; nearest legal value "
      "4");
  EXPECT_THAT(complaint({.q_heads = 8, .kv_heads = 16}), HasSubstr("nearest legal value 8"));
  EXPECT_THAT(complaint({.q_heads = 0}), HasSubstr("q_heads is 0: must be in [1, 4096]; nearest"));
  EXPECT_THAT(complaint({.q_heads = 5000}), HasSubstr("nearest legal value 4096"));
  EXPECT_THAT(complaint({.kv_heads = -8}), HasSubstr("kv_heads is -8"));
  EXPECT_THAT(complaint({.head_dim = 1025}), HasSubstr("head_dim is 1025: must be in [1, 1024]"));
  EXPECT_THAT(complaint({.value_dim = 0}), HasSubstr("value_dim is 0"));
}

}  // namespace
}  // namespace libra
