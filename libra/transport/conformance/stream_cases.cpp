// When it moves: what a stream's order promises, and what must not block.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <vector>

#include "libra/transport/conformance/cases.h"
#include "libra/transport/conformance/pattern.h"
#include "libra/transport/conformance/ring.h"

namespace libra::conformance {
namespace {

constexpr std::chrono::seconds kGiveUp{60};  // a broken transport must not hang the test

std::vector<Block> small_blocks() {
  return std::vector<Block>(3, Block({.rows = 5, .row_bytes = 48, .gap_bytes = 16}));
}

void fill_all(std::vector<Block>& blocks, std::uint64_t key) {
  for (Block& block : blocks) block.fill(key++);
}

bool all_hold(const std::vector<Block>& blocks, std::uint64_t key) {
  for (const Block& block : blocks)
    if (!block.holds(key++)) return false;
  return true;
}

void the_caller_is_not_blocked_and_the_stream_is_in_order(Worker& worker) {
  std::vector<Block> out = small_blocks();
  std::vector<Block> in = small_blocks();
  std::promise<void> gate;
  bool arrived = false;
  worker.stream.enqueue([&] {
    gate.get_future().wait();
    fill_all(out, 40);
  });
  const Handle handle =
      worker.transport->post(ring_exchange(worker, tag_of(1), out, in), worker.stream);
  worker.transport->wait(handle, worker.stream);
  worker.stream.enqueue([&] { arrived = all_hold(in, 40); });
  gate.set_value();  // reached only if neither post nor wait blocks
  worker.stream.synchronize();
  EXPECT_TRUE(arrived);
}

void data_moves_while_the_stream_is_busy(Worker& worker) {
  std::vector<Block> out = small_blocks();
  std::vector<Block> in = small_blocks();
  fill_all(out, 7);
  std::promise<void> arrived;
  auto busy_until = arrived.get_future();
  std::future_status busy = std::future_status::deferred;
  TaskQueue observer;
  const Handle handle =
      worker.transport->post(ring_exchange(worker, tag_of(1), out, in), worker.stream);
  worker.stream.enqueue([&] { busy = busy_until.wait_for(kGiveUp); });
  worker.transport->wait(handle, observer);
  observer.enqueue([&arrived] { arrived.set_value(); });
  worker.stream.synchronize();
  observer.synchronize();
  EXPECT_EQ(busy, std::future_status::ready);
  EXPECT_TRUE(all_hold(in, 7));
}

void two_slots_serve_many_rounds(Worker& worker) {
  constexpr std::size_t kRounds = 100;
  std::vector<std::vector<Block>> out(2, small_blocks());
  std::vector<std::vector<Block>> in(2, small_blocks());
  std::vector<Handle> handles(kRounds);
  std::size_t arrived = 0;
  for (std::size_t round = 0; round < kRounds + 2; ++round) {
    std::vector<Block>& sent = out[round % 2];
    std::vector<Block>& received = in[round % 2];
    if (round >= 2) {
      worker.transport->wait(handles[round - 2], worker.stream);
      worker.stream.enqueue([&received, &arrived, key = 10 * (round - 2)] {
        if (all_hold(received, key)) ++arrived;
      });
    }
    if (round >= kRounds) continue;
    worker.stream.enqueue([&sent, key = 10 * round] { fill_all(sent, key); });
    const Tag tag = tag_of(static_cast<std::int32_t>(round));
    handles[round] =
        worker.transport->post(ring_exchange(worker, tag, sent, received), worker.stream);
  }
  worker.stream.synchronize();
  EXPECT_EQ(arrived, kRounds);
}

void a_handle_may_be_awaited_again(Worker& worker) {
  std::vector<Block> out = small_blocks();
  std::vector<Block> in = small_blocks();
  fill_all(out, 3);
  TaskQueue other;
  const Handle handle =
      worker.transport->post(ring_exchange(worker, tag_of(1), out, in), worker.stream);
  worker.transport->wait(handle, worker.stream);
  worker.transport->wait(handle, other);
  worker.stream.synchronize();
  other.synchronize();
  EXPECT_EQ(worker.transport->take_records().size(), 1U);
  worker.transport->wait(handle, other);
  other.synchronize();
  EXPECT_TRUE(all_hold(in, 3));
}

}  // namespace

std::vector<ConformanceCase> stream_cases() {
  return {
      {"CallerIsNotBlockedAndTheStreamIsInOrder",
       the_caller_is_not_blocked_and_the_stream_is_in_order},
      {"DataMovesWhileTheStreamIsBusy", data_moves_while_the_stream_is_busy},
      {"TwoSlotsServeManyRounds", two_slots_serve_many_rounds},
      {"AHandleMayBeAwaitedAgain", a_handle_may_be_awaited_again},
  };
}

}  // namespace libra::conformance
