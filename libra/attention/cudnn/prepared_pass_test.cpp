#include "libra/attention/cudnn/prepared_pass.h"

#include <gtest/gtest.h>

namespace libra::cudnn {
namespace {

constexpr std::int32_t kQHeads = 32, kKvHeads = 8, kDim = 128;
constexpr PassOptions kOptions{std::int64_t{2} << 30, false};

PassKey key_of(const std::vector<Entry>& entries) {
  PassKey key;
  key.pass = Pass::kBackward;
  key.call.entries = entries;
  key.call.q_heads = kQHeads;
  key.call.kv_heads = kKvHeads;
  key.call.gradients = Gradients::kWritten;
  for (std::size_t i = 0; i < kNumPorts; ++i) {
    const auto port = static_cast<Port>(i);
    const bool keys =
        port == Port::kK || port == Port::kV || port == Port::kDk || port == Port::kDv;
    key.layouts[port] = {DType::kBf16, kDim, {(keys ? kKvHeads : kQHeads) * kDim, kDim}};
  }
  key.layouts[Port::kLse] = {DType::kFp32, 1, {kQHeads, 1}};
  return key;
}

Entry square(std::int64_t row, std::int64_t rows) {
  return {row, rows, row, rows, 0, 0, Mask::kTopLeftCausal};
}

TEST(CanWrite, WholeSamplesThatFitTheScratchMemory) {
  EXPECT_TRUE(can_write(key_of({}), kOptions));
  EXPECT_TRUE(can_write(key_of({square(0, 644), square(700, 16384)}), kOptions));
  EXPECT_FALSE(can_write(key_of({square(0, 644), square(700, 100'000)}), kOptions));
}

// What has many keys to a query needs more room than a square of as many queries and keys.
TEST(CanWrite, EveryEntryByItself) {
  const Entry square_one = square(0, 40'000),
              wide{50'000, 19'000, 50'000, 39'000, 0, 0, Mask::kFull};
  EXPECT_TRUE(can_write(key_of({square_one}), kOptions));
  EXPECT_FALSE(can_write(key_of({wide}), kOptions));
  EXPECT_FALSE(can_write(key_of({square_one, wide}), kOptions));
}

TEST(CanWrite, NoRowWithoutAKeyAndNoKeyWithoutAQuery) {
  EXPECT_TRUE(can_write(key_of({{0, 10, 0, 20, 0, 0, Mask::kFull}}), kOptions));
  for (const Mask mask : {Mask::kTopLeftCausal, Mask::kBottomRightCausal}) {
    EXPECT_FALSE(can_write(key_of({{0, 10, 0, 20, 0, 0, mask}}), kOptions));
    EXPECT_FALSE(can_write(key_of({{0, 20, 0, 10, 0, 0, mask}}), kOptions));
    EXPECT_FALSE(can_write(key_of({{0, 0, 0, 10, 0, 0, mask}}), kOptions));
    EXPECT_FALSE(can_write(key_of({{0, 10, 0, 0, 0, 0, mask}}), kOptions));
  }
}

TEST(CanWrite, TheDeterministicModeWhereQueriesTimesKeysFit) {
  const PassOptions deterministic{kOptions.max_scratch_bytes, true};
  EXPECT_TRUE(can_write(key_of({square(0, 2048)}), deterministic));
  EXPECT_FALSE(can_write(key_of({square(0, 16384)}), deterministic));
}

}  // namespace
}  // namespace libra::cudnn
