#include "libra/runtime/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/task_queue.h"
#include "libra/runtime/worker_threads.h"
#include "libra/transport/inproc/transport.h"

namespace libra {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What each worker's check() throws if it holds fingerprints[worker].
std::vector<std::string> verdicts(const std::vector<std::uint64_t>& fingerprints) {
  const auto endpoints = make_inproc_group(static_cast<std::int32_t>(fingerprints.size()), {});
  return testing::on_every_worker(endpoints, [&](Transport& transport) {
    ReferenceAttention attention;
    EventLog log;
    WorkerContext context{attention, transport, log};
    TaskQueue stream;
    Agreement agreement(fingerprints[at(transport.worker())], context, stream);
    agreement.check();
    EXPECT_EQ(context.next_step, 1) << "an agreement is a step like any other";
  });
}

TEST(Agreement, EqualPlansAgree) {
  EXPECT_THAT(verdicts({7}), Each(IsEmpty()));
  EXPECT_THAT(verdicts({7, 7, 7, 7}), Each(IsEmpty()));
}

TEST(Agreement, AMismatchIsAnErrorOnEveryWorkerThatNamesTheOthers) {
  const std::vector<std::string> errors = verdicts({7, 7, 8, 7});
  EXPECT_THAT(errors[0], HasSubstr("worker 0 and worker 2 hold different plans"));
  EXPECT_THAT(errors[1], HasSubstr("worker 1 and worker 2 hold different plans"));
  EXPECT_THAT(errors[2], HasSubstr("worker 2 and workers 0, 1, 3 hold different plans"));
  EXPECT_THAT(errors[3], HasSubstr("worker 3 and worker 2 hold different plans"));
}

TEST(Agreement, AWorkerThatDoesNotComeIsNamedWithinTheDeadline) {
  const auto endpoints = make_inproc_group(3, {std::chrono::milliseconds(200)});
  const auto errors = testing::on_every_worker(endpoints, [](Transport& transport) {
    if (transport.worker() == 2) return;
    ReferenceAttention attention;
    EventLog log;
    WorkerContext context{attention, transport, log};
    TaskQueue stream;
    Agreement(7, context, stream).check();
  });
  EXPECT_THAT(errors[0], HasSubstr("for worker 2 in step 0, agree"));
  EXPECT_THAT(errors[1], HasSubstr("for worker 2 in step 0, agree"));
}

// Peers write into the agreement's memory: it must not be gone before they have.
TEST(Agreement, OneThatNobodyChecksWaitsForThePeers) {
  const auto endpoints = make_inproc_group(4, {});
  const auto errors = testing::on_every_worker(endpoints, [](Transport& transport) {
    ReferenceAttention attention;
    EventLog log;
    WorkerContext context{attention, transport, log};
    TaskQueue stream;
    { const Agreement unchecked(static_cast<std::uint64_t>(transport.worker()), context, stream); }
    transport.poll();
    EXPECT_EQ(transport.take_records().size(), 1U) << "the exchange is complete";
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

}  // namespace
}  // namespace libra
