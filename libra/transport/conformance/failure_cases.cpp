// How it ends if it cannot end well: on every worker, soon, with the first cause.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "libra/base/error.h"
#include "libra/transport/conformance/cases.h"
#include "libra/transport/conformance/pattern.h"
#include "libra/transport/conformance/ring.h"

namespace libra::conformance {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kShort{1000};
constexpr std::chrono::milliseconds kLong{20'000};  // a case that lasts as long has not been told

/// Checks at its end that the case took less than `limit`.
class Within {
 public:
  explicit Within(std::chrono::milliseconds limit) : limit_(limit) {}
  ~Within() { EXPECT_LT(Clock::now() - begin_, limit_); }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  std::chrono::milliseconds limit_;
  Clock::time_point begin_ = Clock::now();
};

/// The TransportError that `body` throws, or else the one that the stream fails with.
template <typename Body>
std::string failure_of(Stream& stream, Body body) {
  try {
    body();
    stream.synchronize();
  } catch (const TransportError& error) {
    return error.what();
  }
  return "nothing has failed";
}

/// The TransportError that poll() throws, if it does before the limit.
std::string polled_failure(Transport& transport, std::chrono::milliseconds limit) {
  for (const auto begin = Clock::now(); Clock::now() - begin < limit;) {
    try {
      transport.poll();
    } catch (const TransportError& error) {
      return error.what();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return "poll has not thrown";
}

void expect_unusable(Worker& worker) {
  TaskQueue fresh;
  EXPECT_THROW(worker.transport->poll(), TransportError);
  EXPECT_THROW(worker.transport->post({.tag = tag_of(50), .sends = {}, .receives = {}}, fresh),
               TransportError);
}

std::string begins_with_worker(const Worker& worker) {
  return fmt::format("worker {} ", worker.id());
}

Exchange receive_from(std::int32_t peer, const Tag& tag, Block& in) {
  return {.tag = tag, .sends = {}, .receives = {{.peer = peer, .local = in.view()}}};
}

/// Waits for something that `peer` never sends.
std::string wait_in_vain(Worker& worker, std::int32_t peer) {
  Block in({.rows = 1, .row_bytes = 32});
  std::string failure = failure_of(
      worker.stream, [&] { post_and_wait(worker, {receive_from(peer, tag_of(99), in)}); });
  EXPECT_TRUE(in.untouched());
  return failure;
}

void a_peer_that_does_not_post_is_named(Worker& worker) {
  const Within limit(2 * kShort);
  const std::string failure =
      worker.id() == 0 ? polled_failure(*worker.transport, kLong) : wait_in_vain(worker, 0);
  EXPECT_THAT(failure, StartsWith(begins_with_worker(worker)));
  EXPECT_THAT(failure, ContainsRegex("worker [1-9][0-9]* waited 1000 ms for worker 0 in "));
  EXPECT_THAT(failure, HasSubstr(describe(tag_of(99))));
  expect_unusable(worker);
}

void an_overdue_peer_is_found_without_a_wait(Worker& worker) {
  const Within limit(2 * kShort);
  Block in({.rows = 1, .row_bytes = 32});
  if (worker.id() == 1) worker.transport->post(receive_from(0, tag_of(4), in), worker.stream);
  EXPECT_THAT(polled_failure(*worker.transport, kLong),
              HasSubstr("worker 1 waited 1000 ms for worker 0 in " + describe(tag_of(4))));
  EXPECT_TRUE(in.untouched());
}

void abort_reaches_every_worker(Worker& worker) {
  const Within limit(kLong);
  if (worker.id() != 0) {
    EXPECT_THAT(wait_in_vain(worker, 0), HasSubstr("worker 0 aborted: the loss is not a number"));
  } else {
    worker.transport->abort("the loss is not a number");
  }
  expect_unusable(worker);
}

/// Worker 0 sends `sent` bytes where worker 1 expects `expected`.
void sizes_differ(Worker& worker, std::int64_t sent, std::int64_t expected) {
  const Within limit(kLong);
  Block block({.rows = 1, .row_bytes = worker.id() == 0 ? sent : expected});
  Exchange exchange{.tag = tag_of(4), .sends = {}, .receives = {}};
  if (worker.id() == 0) exchange.sends.push_back({.peer = 1, .local = block.view()});
  if (worker.id() == 1) exchange.receives.push_back({.peer = 0, .local = block.view()});
  Block never({.rows = 1, .row_bytes = 32});
  const Exchange in_vain = receive_from(next_of(worker), tag_of(99), never);
  const std::string failure = failure_of(worker.stream, [&] {
    post_and_wait(worker, {exchange, in_vain});
  });
  EXPECT_THAT(failure, HasSubstr("worker 0"));
  EXPECT_THAT(failure, HasSubstr("worker 1"));
  EXPECT_THAT(failure, HasSubstr(describe(tag_of(4))));
  EXPECT_THAT(failure, HasSubstr(fmt::format("{}", expected)));
  expect_unusable(worker);
}

void too_many_bytes(Worker& worker) { sizes_differ(worker, 1000, 600); }
void too_few_bytes(Worker& worker) { sizes_differ(worker, 600, 1000); }
void far_too_many_bytes(Worker& worker) { sizes_differ(worker, 4'000'000, 2'000'000); }

void a_destroyed_endpoint_fails_its_peers(Worker& worker) {
  const Within limit(kLong);
  if (worker.id() != 0) {
    EXPECT_THAT(wait_in_vain(worker, 0), HasSubstr("worker 0 left"));
    return;
  }
  Block in({.rows = 1, .row_bytes = 32});
  const Exchange exchange = receive_from(1, tag_of(5), in);
  worker.transport->wait(worker.transport->post(exchange, worker.stream), worker.stream);
  worker.transport.reset();
  EXPECT_THAT(failure_of(worker.stream, [] {}), HasSubstr("worker 0"));
}

void a_failed_stream_fails_the_peers(Worker& worker) {
  const Within limit(kLong);
  if (worker.id() != 0) {
    EXPECT_THAT(wait_in_vain(worker, 0), HasSubstr("worker 0 cannot go on"));
    return;
  }
  worker.stream.enqueue([] { throw InputError("tensor q", "is too small"); });
  worker.transport->post({.tag = tag_of(99), .sends = {}, .receives = {}}, worker.stream);
  EXPECT_THROW(worker.stream.synchronize(), InputError);
  expect_unusable(worker);
}

/// Every worker frees its memory as soon as it has seen the failure, with copies under way.
void nothing_is_touched_after_the_failure(Worker& worker) {
  const Within limit(kLong);
  const BlockShape shape{.rows = 64, .row_bytes = 64 * 1024, .gap_bytes = 64};
  std::vector<Block> out(8, Block(shape));
  std::vector<Block> in(8, Block(shape));
  const std::string failure = failure_of(worker.stream, [&] {
    const Exchange exchange = ring_exchange(worker, tag_of(1), out, in);
    worker.transport->wait(worker.transport->post(exchange, worker.stream), worker.stream);
    if (worker.id() == 0) worker.transport->abort("in the middle");
    post_and_wait(worker, {receive_from(next_of(worker), tag_of(99), in[0])});
  });
  EXPECT_THAT(failure, HasSubstr("worker 0 aborted: in the middle"));
  in.assign(1, Block({.rows = 1, .row_bytes = 1}));
  out.assign(1, Block({.rows = 1, .row_bytes = 1}));
  EXPECT_TRUE(in[0].untouched());
}

}  // namespace

std::vector<ConformanceCase> failure_cases() {
  return {
      {"APeerThatDoesNotPostIsNamed", a_peer_that_does_not_post_is_named, 2, kShort},
      {"AnOverduePeerIsFoundWithoutAWait", an_overdue_peer_is_found_without_a_wait, 2, kShort},
      {"AbortReachesEveryWorker", abort_reaches_every_worker, 2, kLong},
      {"TooManyBytesFail", too_many_bytes, 2, kLong},
      {"FarTooManyBytesFail", far_too_many_bytes, 2, kLong},
      {"TooFewBytesFail", too_few_bytes, 2, kLong},
      {"ADestroyedEndpointFailsItsPeers", a_destroyed_endpoint_fails_its_peers, 2, kLong},
      {"AFailedStreamFailsThePeers", a_failed_stream_fails_the_peers, 2, kLong},
      {"NothingIsTouchedAfterTheFailure", nothing_is_touched_after_the_failure, 2, kLong},
  };
}

}  // namespace libra::conformance
