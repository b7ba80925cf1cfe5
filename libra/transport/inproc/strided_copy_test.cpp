#include "libra/transport/inproc/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "libra/base/rng.h"

namespace libra::inproc {
namespace {

/// The offsets of a view's bytes, one by one: the slow truth.
std::vector<std::size_t> offsets(const StridedView& view) {
  std::vector<std::size_t> all;
  for (std::int64_t row = 0; row < view.rows; ++row)
    for (std::int64_t i = 0; i < view.row_bytes; ++i)
      all.push_back(static_cast<std::size_t>(row * view.stride_bytes + i));
  return all;
}

TEST(StridedCopy, AgreesWithCopyingByteByByte) {
  const std::atomic<bool> go_on = false;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const auto below = [&rng](std::uint64_t bound) {
      return static_cast<std::int64_t>(rng.below(bound));
    };
    // Equal products, so that the two ends cut the same bytes into rows differently.
    const std::int64_t a = below(5);
    const std::int64_t b = below(7) + 1;
    const std::int64_t c = below(9) + 1;
    std::vector<std::byte> source(4096);
    for (std::byte& byte : source) byte = static_cast<std::byte>(rng.below(256));
    std::vector<std::byte> target(4096, std::byte{0xEE});
    std::vector<std::byte> wanted = target;
    const StridedView from{source.data(), a * b, c, c + below(4)};
    const StridedView to{target.data(), a, b * c, b * c + below(4)};
    ASSERT_TRUE(copy_strided(from, to, go_on));
    const std::vector<std::size_t> read = offsets(from);
    const std::vector<std::size_t> written = offsets(to);
    for (std::size_t i = 0; i < read.size(); ++i) wanted[written[i]] = source[read[i]];
    ASSERT_EQ(target, wanted);
  }
}

TEST(StridedCopy, CopiesMoreThanOneBlock) {
  const std::atomic<bool> go_on = false;
  std::vector<std::byte> source(5'000'001, std::byte{3});
  source.back() = std::byte{4};
  std::vector<std::byte> target(source.size());
  const auto bytes = static_cast<std::int64_t>(source.size());
  ASSERT_TRUE(copy_strided({source.data(), 1, bytes, 0}, {target.data(), 1, bytes, 0}, go_on));
  EXPECT_EQ(source, target);
}

TEST(StridedCopy, StopsWhenCancelled) {
  const std::atomic<bool> stop = true;
  std::vector<std::byte> source(8, std::byte{3});
  std::vector<std::byte> target(8);
  EXPECT_FALSE(copy_strided({source.data(), 2, 4, 4}, {target.data(), 2, 4, 4}, stop));
  EXPECT_EQ(std::count(target.begin(), target.end(), std::byte{3}), 0);
}

}  // namespace
}  // namespace libra::inproc
