// Workers that are threads of one process and share the GPUs at hand.
#include "libra/transport/peer/peer_group.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <tuple>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/task_queue.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"
#include "libra/transport/peer/peer_cases.h"

namespace libra {
namespace {

class PeerGroup : public ::testing::TestWithParam<std::tuple<std::size_t, std::int32_t>> {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no GPU that this process can use";
  }
};

std::vector<std::int32_t> devices_for(std::int32_t workers) {
  std::vector<std::int32_t> devices;
  devices.reserve(at(workers));
  for (std::int32_t worker = 0; worker < workers; ++worker) {
    devices.push_back(worker % device_count());
  }
  return devices;
}

TEST_P(PeerGroup, Holds) {
  const auto& [index, workers] = GetParam();
  const peer::PeerCase& test = peer::peer_cases()[index];
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const std::vector<std::int32_t> devices = devices_for(workers);
  auto endpoints = make_peer_group(devices, test.options());
  std::vector<std::string> errors(at(workers));
  std::vector<std::jthread> threads;
  threads.reserve(at(workers));
  for (std::size_t worker = 0; worker < at(workers); ++worker) {
    threads.emplace_back([&, worker] {
      errors[worker] = play(test, std::move(endpoints[worker]), devices[worker], seed);
    });
  }
  threads.clear();
  for (std::size_t worker = 0; worker < at(workers); ++worker) {
    EXPECT_EQ(errors[worker], "") << "worker " << worker;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, PeerGroup,
                         ::testing::Combine(::testing::Range(std::size_t{0},
                                                             peer::peer_cases().size()),
                                            ::testing::Values(1, 2, 5)),
                         [](const auto& test) { return std::apply(peer::label, test.param); });

class PeerGroupArguments : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no GPU that this process can use";
  }
};

TEST_F(PeerGroupArguments, SizesThatDisagreeFailBothWorkers) {
  auto endpoints = make_peer_group({0, 0}, {});
  CudaStream sender(0), receiver(0);
  const auto memory = allocate_device(0, 256);
  const Tag tag{1, Phase::kForwardDispatch, 0, 0};
  endpoints[0]->post({tag, {{1, {memory.get(), 1, 64, 64}}}, {}}, sender);
  endpoints[1]->post({tag, {}, {{0, {memory.get() + 128, 1, 65, 65}}}}, receiver);
  for (CudaStream* stream : {&sender, &receiver}) {
    EXPECT_THROW(stream->synchronize(), TransportError);
  }
  EXPECT_THROW(endpoints[0]->poll(), TransportError);
}

TEST_F(PeerGroupArguments, StreamsOfAnotherKindAreRefused) {
  auto endpoints = make_peer_group({0}, {});
  TaskQueue queue;
  EXPECT_THROW(endpoints[0]->post({{}, {}, {}}, queue), ConfigError);
}

TEST(PeerGroupDevices, ADeviceThatIsNotThereIsRefused) {
  EXPECT_THROW(make_peer_group({device_count()}, {}), ConfigError);
  EXPECT_THROW(make_peer_group({}, {}), ConfigError);
}

}  // namespace
}  // namespace libra
