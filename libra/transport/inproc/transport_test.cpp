#include "libra/transport/inproc/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/base/rng.h"
#include "libra/base/task_queue.h"

namespace libra {
namespace {

using testing::HasSubstr;

Exchange receive(std::int32_t peer, std::vector<std::byte>& into) {
  const StridedView view{into.data(), 1, static_cast<std::int64_t>(into.size()), 0};
  return {.tag = {.step = 1}, .sends = {}, .receives = {{.peer = peer, .local = view}}};
}

Exchange send(std::int32_t peer, std::vector<std::byte>& from) {
  const StridedView view{from.data(), 1, static_cast<std::int64_t>(from.size()), 0};
  return {.tag = {.step = 1}, .sends = {{.peer = peer, .local = view}}, .receives = {}};
}

std::string failure_of(Stream& stream) {
  try {
    stream.synchronize();
  } catch (const TransportError& error) {
    return error.what();
  }
  return "the stream has not failed";
}

TEST(InprocTransport, EndpointsKnowTheirPlace) {
  const auto group = make_inproc_group(3);
  ASSERT_EQ(group.size(), 3U);
  for (std::int32_t worker = 0; worker < 3; ++worker) {
    EXPECT_EQ(group[static_cast<std::size_t>(worker)]->worker(), worker);
    EXPECT_EQ(group[static_cast<std::size_t>(worker)]->workers(), 3);
    EXPECT_EQ(group[static_cast<std::size_t>(worker)]->name(), "inproc");
  }
}

TEST(InprocTransport, RefusesImpossibleGroups) {
  EXPECT_THROW(make_inproc_group(0), ConfigError);
  EXPECT_THROW(make_inproc_group(2, {.deadline = std::chrono::milliseconds(-1)}), ConfigError);
}

TEST(InprocTransport, ACleanLeaveLetsTheOthersGoOn) {
  auto group = make_inproc_group(3);
  std::vector<std::byte> out(100, std::byte{7});
  std::vector<std::byte> in(100);
  TaskQueue sender;
  TaskQueue receiver;
  group[0].reset();
  group[1]->post(send(2, out), sender);
  group[2]->wait(group[2]->post(receive(1, in), receiver), receiver);
  receiver.synchronize();
  sender.synchronize();
  EXPECT_EQ(in, out);
}

TEST(InprocTransport, ALeaveIsNoticedByThoseWhoWaitAndThoseWhoComeLater) {
  for (const bool late : {false, true}) {
    auto group = make_inproc_group(2);
    std::vector<std::byte> in(100);
    TaskQueue stream;
    if (late) group[0].reset();
    const Handle handle = group[1]->post(receive(0, in), stream);
    group[1]->wait(handle, stream);
    group[0].reset();
    const std::string failure = failure_of(stream);
    EXPECT_THAT(failure, HasSubstr("worker 0"));
    EXPECT_THAT(failure, HasSubstr("left"));
  }
}

TEST(InprocTransport, StreamsMayOutliveTheEndpoints) {
  TaskQueue stream;
  std::promise<void> gate;
  std::vector<std::byte> in(100);
  auto group = make_inproc_group(2);
  stream.enqueue([&gate] { gate.get_future().wait(); });
  group[1]->wait(group[1]->post(receive(0, in), stream), stream);
  group.clear();
  gate.set_value();
  EXPECT_THAT(failure_of(stream), HasSubstr("worker 1 left before"));
}

TEST(InprocTransport, EndpointsMayOutliveTheStreams) {
  std::vector<std::byte> in(100);
  auto group = make_inproc_group(2, {.deadline = std::chrono::milliseconds(50)});
  {
    TaskQueue stream;
    group[1]->wait(group[1]->post(receive(0, in), stream), stream);
  }
  EXPECT_THROW(group[0]->poll(), TransportError);
}

TEST(InprocTransport, TheDeadlineCountsFromTheStreamsTurn) {
  constexpr std::chrono::milliseconds kDeadline{500};
  auto group = make_inproc_group(2, {.deadline = kDeadline});
  std::vector<std::byte> out(100, std::byte{7});
  std::vector<std::byte> in(100);
  TaskQueue sender;
  TaskQueue receiver;
  for (TaskQueue* stream : {&sender, &receiver})
    stream->enqueue([kDeadline] { std::this_thread::sleep_for(2 * kDeadline); });
  group[0]->post(send(1, out), sender);
  group[1]->wait(group[1]->post(receive(0, in), receiver), receiver);
  receiver.synchronize();
  EXPECT_EQ(in, out);
}

TEST(InprocTransport, TakesNoOtherStreams) {
  struct OtherStream : Stream {
    void mark(Timestamp*) override {}
    void synchronize() override {}
  } stream;
  const auto group = make_inproc_group(1);
  EXPECT_THROW(group[0]->post({}, stream), InternalError);
}

TEST(InprocTransport, TheArenaDoesNotGrowUnderAnExchange) {
  auto group = make_inproc_group(2);
  std::vector<std::byte> in(100);
  TaskQueue stream;
  group[1]->post(receive(0, in), stream);
  EXPECT_THROW(group[1]->reserve_arena(1), InternalError);
}

// Of two messages of one size the first is sent twice: it must not land in the second one's place.
TEST(InprocTransport, AMessageThatIsSentTwiceDoesNotPassForTheNext) {
  auto group = make_inproc_group(2);
  group[1]->reserve_arena(512);
  std::vector<std::byte> out(100, std::byte{7});
  TaskQueue sender;
  TaskQueue receiver;
  Exchange twice = send(1, out);
  twice.sends[0].peer_arena_offset = 0;
  twice.sends.push_back(twice.sends[0]);
  Exchange both{.tag = twice.tag, .sends = {}, .receives = {}};
  for (const std::int64_t offset : {0, 256}) {
    both.receives.push_back({.peer = 0, .local = {group[1]->arena() + offset, 1, 100, 0}});
  }
  group[0]->post(twice, sender);
  group[1]->wait(group[1]->post(both, receiver), receiver);
  EXPECT_THAT(failure_of(receiver), HasSubstr("worker 0 sends to worker 1, which expects other"));
}

// Memory is reused for something else the moment its owner has seen the failure. Copies that run
// on show as wrong bytes here, and as an error under the sanitizers.
TEST(InprocTransport, MemoryIsItsOwnersAfterTheFailure) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    auto group = make_inproc_group(2);
    std::vector<std::byte> out(8'000'000, std::byte{1});
    std::vector<std::byte> in(8'000'000, std::byte{2});
    TaskQueue sender;
    TaskQueue receiver;
    group[0]->wait(group[0]->post(send(1, out), sender), sender);
    group[1]->wait(group[1]->post(receive(0, in), receiver), receiver);
    std::this_thread::sleep_for(std::chrono::microseconds(rng.below(3000)));
    group[rng.below(2)]->abort("enough");
    failure_of(receiver);
    failure_of(sender);
    in.assign(in.size(), std::byte{3});
    out.assign(out.size(), std::byte{4});
    group.clear();
    EXPECT_EQ(in, std::vector<std::byte>(in.size(), std::byte{3}));
  }
}

}  // namespace
}  // namespace libra
