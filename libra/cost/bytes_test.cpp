#include "libra/cost/bytes.h"

#include <gtest/gtest.h>

namespace libra {
namespace {

constexpr AttentionShape kWideKeys = {32, 8, 192, 128};

TEST(TokenBytes, AreHeadsTimesDimensionTimesElementSize) {
  EXPECT_EQ(q_token_bytes(kWideKeys, 16, DType::kBf16), 16 * 192 * 2);
  EXPECT_EQ(k_token_bytes(kWideKeys, 4, DType::kBf16), 4 * 192 * 2);
  EXPECT_EQ(v_token_bytes(kWideKeys, 4, DType::kBf16), 4 * 128 * 2);
  EXPECT_EQ(kv_token_bytes(kWideKeys, 4, DType::kBf16), 4 * (192 + 128) * 2);
  EXPECT_EQ(o_token_bytes(kWideKeys, 16, DType::kFp64), 16 * 128 * 8);
}

TEST(TokenBytes, OfGradientsOfQAndOAreThoseOfQAndO) {
  EXPECT_EQ(dq_token_bytes(kWideKeys, 16, DType::kFp16), 16 * 192 * 2);
  EXPECT_EQ(do_token_bytes(kWideKeys, 16, DType::kFp16), 16 * 128 * 2);
}

TEST(TokenBytes, OfGradientsOfKAndVAndOfTheLogSumExpAreInTheAccumulationType) {
  EXPECT_EQ(lse_token_bytes(16, DType::kBf16), 16 * 4);
  EXPECT_EQ(lse_token_bytes(16, DType::kFp64), 16 * 8);
  EXPECT_EQ(dk_token_bytes(kWideKeys, 4, DType::kBf16), 4 * 192 * 4);
  EXPECT_EQ(dv_token_bytes(kWideKeys, 4, DType::kFp32), 4 * 128 * 4);
  EXPECT_EQ(dkv_token_bytes(kWideKeys, 4, DType::kFp64), 4 * (192 + 128) * 8);
}

TEST(TokenBytes, OfAMillionTokensDoNotOverflow) {
  EXPECT_EQ(1048576 * q_token_bytes({64, 8, 128, 128}, 64, DType::kBf16), 17179869184);
}

TEST(TokenBytes, OfNoHeadsAreNone) {
  EXPECT_EQ(q_token_bytes(kWideKeys, 0, DType::kBf16), 0);
  EXPECT_EQ(kv_token_bytes(kWideKeys, 0, DType::kBf16), 0);
}

}  // namespace
}  // namespace libra
