#include "libra/runtime/host_tensor.h"

#include <gtest/gtest.h>

#include <cmath>

#include "libra/base/check.h"

namespace libra {
namespace {

constexpr DType kArithmetic[] = {DType::kFp64, DType::kFp32, DType::kBf16};

TEST(HostTensor, IsNanUntilWritten) {
  for (const DType dtype : kArithmetic) {
    const HostTensor tensor(3, 2, 4, dtype);
    for (std::int64_t row = 0; row < 3; ++row) EXPECT_TRUE(std::isnan(tensor.get(row, 1, 3)));
  }
}

TEST(HostTensor, GivesBackWhatWasSet) {
  for (const DType dtype : kArithmetic) {
    HostTensor tensor(3, 2, 4, dtype);
    tensor.set(2, 1, 3, -1.5);
    EXPECT_EQ(tensor.get(2, 1, 3), -1.5);
    EXPECT_TRUE(std::isnan(tensor.get(2, 1, 2)));
  }
}

TEST(HostTensor, RoundsToItsDtype) {
  const double value = 1 + std::ldexp(1.0, -9) + std::ldexp(1.0, -30);
  HostTensor fp64(1, 1, 1, DType::kFp64), fp32(1, 1, 1, DType::kFp32), bf16(1, 1, 1, DType::kBf16);
  for (HostTensor* tensor : {&fp64, &fp32, &bf16}) tensor->set(0, 0, 0, value);
  EXPECT_EQ(fp64.get(0, 0, 0), value);
  EXPECT_EQ(fp32.get(0, 0, 0), 1 + std::ldexp(1.0, -9));
  EXPECT_EQ(bf16.get(0, 0, 0), 1);
}

TEST(HostTensor, ItsViewIsDenseAndShowsTheSameElements) {
  HostTensor tensor(3, 2, 4, DType::kFp64);
  tensor.set(2, 1, 3, 7);
  const TensorView view = tensor.view();
  EXPECT_EQ(view.row_stride, 8);
  EXPECT_EQ(view.head_stride, 4);
  EXPECT_EQ(static_cast<const double*>(view.data)[2 * 8 + 1 * 4 + 3], 7);
}

TEST(HostTensor, TheSameSeedGivesTheSameValues) {
  HostTensor a(5, 2, 3, DType::kFp32), b(5, 2, 3, DType::kFp32);
  Rng first(9), second(9);
  a.fill_normal(first);
  b.fill_normal(second);
  for (std::int64_t row = 0; row < 5; ++row) EXPECT_EQ(a.get(row, 1, 2), b.get(row, 1, 2));
  EXPECT_NE(a.get(0, 0, 0), a.get(0, 0, 1));
}

TEST(HostTensor, HasNoArithmeticInFp16) {
  EXPECT_THROW(HostTensor(1, 1, 1, DType::kFp16), InternalError);
  EXPECT_NO_THROW(HostTensor(0, 1, 1, DType::kFp16));
}

}  // namespace
}  // namespace libra
