#include "libra/cuda/cuda_stream.h"

#include <gtest/gtest.h>

#include <vector>

#include "libra/base/error.h"
#include "libra/base/task_queue.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/device.h"
#include "libra/cuda/stream_flags.h"

namespace libra {
namespace {

TEST(Device, AMachineWithoutOneHasCountZero) { EXPECT_GE(device_count(), 0); }

TEST(CudaStreamKind, AnotherKindOfStreamIsRefused) {
  TaskQueue queue;
  EXPECT_THROW(as_cuda(queue), ConfigError);
}

class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no GPU that this process can use";
  }
};

TEST_F(OnDevice, MarksTimeInStreamOrder) {
  CudaStream stream(0);
  const auto memory = allocate_device(0, 1 << 28);
  Timestamp before, after;
  stream.mark(&before);
  check_cuda(cudaMemsetAsync(memory.get(), 1, 1 << 28, stream.get()), "cudaMemsetAsync");
  stream.mark(&after);
  stream.synchronize();
  EXPECT_GT(after.wall_ns, before.wall_ns);
}

TEST_F(OnDevice, AFailureIsThrownWithItsFirstReason) {
  CudaStream stream(0);
  stream.failure()->fail("worker 3 is gone");
  stream.failure()->fail("worker 4 too");
  EXPECT_NE(*stream.failure()->flag(), 0U);
  try {
    stream.synchronize();
    FAIL() << "nothing was thrown";
  } catch (const TransportError& error) {
    EXPECT_STREQ(error.what(), "worker 3 is gone");
  }
  EXPECT_THROW(stream.synchronize(), TransportError);
}

// Two streams take turns, ordered by words in host memory alone.
TEST_F(OnDevice, StreamsOrderTheirWorkByFlags) {
  constexpr std::uint32_t kTurns = 50;
  CudaStream left(0), right(0);
  const auto memory = allocate_mapped(2 * sizeof(std::uint32_t));
  auto* const ping = reinterpret_cast<std::uint32_t*>(memory.get());
  std::uint32_t* const pong = ping + 1;
  const auto value = allocate_device(0, 1), log = allocate_device(0, kTurns);
  for (std::uint32_t turn = 1; turn <= kTurns; ++turn) {
    check_cuda(cudaMemsetAsync(value.get(), static_cast<int>(turn), 1, left.get()), "memset");
    enqueue_write(left.get(), ping, turn);
    enqueue_wait(left.get(), pong, turn);
    enqueue_wait(right.get(), ping, turn);
    check_cuda(
        cudaMemcpyAsync(log.get() + turn - 1, value.get(), 1, cudaMemcpyDefault, right.get()),
        "cudaMemcpyAsync");
    enqueue_write(right.get(), pong, turn);
  }
  left.synchronize();
  right.synchronize();
  std::vector<std::uint8_t> found(kTurns);
  check_cuda(cudaMemcpy(found.data(), log.get(), kTurns, cudaMemcpyDefault), "cudaMemcpy");
  for (std::uint32_t turn = 1; turn <= kTurns; ++turn) EXPECT_EQ(found[turn - 1], turn);
}

TEST_F(OnDevice, TooMuchMemoryIsAnErrorWithBothSizes) {
  EXPECT_THROW(allocate_device(0, std::int64_t{1} << 50), DeviceError);
  EXPECT_NO_THROW(allocate_device(0, 1 << 20));
}

TEST_F(OnDevice, AGuardRestoresTheDevice) {
  int before = -1, after = -1;
  check_cuda(cudaGetDevice(&before), "cudaGetDevice");
  { const DeviceGuard guard(device_count() - 1); }
  check_cuda(cudaGetDevice(&after), "cudaGetDevice");
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace libra
