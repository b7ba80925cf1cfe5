#include "libra/runtime/tensor_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libra/base/error.h"
#include "libra/runtime/host_tensor.h"

namespace libra {
namespace {

std::byte* first_byte(const TensorView& tensor) { return static_cast<std::byte*>(tensor.data); }

TEST(TensorViews, ASubTensorBeginsAtItsRowAndHeadAndKeepsTheStrides) {
  HostTensor tensor(10, 6, 4, DType::kFp32);
  const TensorView part = sub_tensor(tensor.view(), 3, 5, 2, 3);
  EXPECT_EQ(first_byte(part), first_byte(tensor.view()) + (3 * 6 + 2) * 4 * 4);
  EXPECT_EQ(part.rows, 5);
  EXPECT_EQ(part.heads, 3);
  EXPECT_EQ(part.dim, 4);
  EXPECT_EQ(part.row_stride, 24);
  EXPECT_EQ(part.head_stride, 4);
}

TEST(TensorViews, SubTensorOffsetsDoNotOverflow32Bits) {
  constexpr std::uintptr_t kBegin = 4096;  // nobody reads there
  const TensorView tensor{
      reinterpret_cast<void*>(kBegin), DType::kBf16, 1 << 20, 64, 128, 64 * 128, 128};
  const TensorView last = sub_tensor(tensor, (1 << 20) - 1, 1, 63, 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(last.data),
            kBegin + ((std::uintptr_t{1} << 33) - 128) * 2);
}

TEST(TensorViews, RowsAreAsWideAsTheirHeadsAndAsFarApartAsTheTensorSays) {
  HostTensor tensor(10, 6, 4, DType::kBf16);
  const StridedView rows = as_rows(sub_tensor(tensor.view(), 1, 8, 2, 3));
  EXPECT_EQ(rows.rows, 8);
  EXPECT_EQ(rows.row_bytes, 3 * 4 * 2);
  EXPECT_EQ(rows.stride_bytes, 6 * 4 * 2);
}

TEST(TensorViews, HeadsThatLieApartAreRefusedWithTheStrideThatWouldDo) {
  HostTensor tensor(10, 6, 4, DType::kFp64);
  TensorView heads_outermost = tensor.view();
  heads_outermost.row_stride = 4;
  heads_outermost.head_stride = 40;
  try {
    as_rows(heads_outermost);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("head stride 40"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("at stride 4"));
  }
  heads_outermost.heads = 1;
  EXPECT_EQ(as_rows(heads_outermost).stride_bytes, 4 * 8) << "one head has no neighbour";
}

// 2 slots of 5 rows of 24 bytes.
constexpr Region kRegion{512, 256, 24, 5, 2};

TEST(TensorViews, ARegionsSlotIsADenseTensor) {
  std::byte memory[2048];
  const TensorView tensor = region_tensor(memory, kRegion, 3, 1, 3, DType::kFp64);
  EXPECT_EQ(first_byte(tensor), memory + 512 + 256) << "slot 3 of two is slot 1";
  EXPECT_EQ(tensor.rows, 5);
  EXPECT_EQ(tensor.row_stride, 3);
  EXPECT_EQ(tensor.head_stride, 3);
}

TEST(TensorViews, RowsOfARegionAreDense) {
  std::byte memory[2048];
  const StridedView rows = region_rows(memory, kRegion, 1, 2, 3);
  EXPECT_EQ(rows.data, memory + 512 + 256 + 2 * 24);
  EXPECT_EQ(rows.rows, 3);
  EXPECT_EQ(rows.row_bytes, 24);
  EXPECT_EQ(rows.stride_bytes, 24);
}

}  // namespace
}  // namespace libra
