#include "libra/transport/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "libra/base/check.h"
#include "libra/base/error.h"

namespace libra {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr TransportOptions kSoon{.deadline = std::chrono::milliseconds(1)};

Exchange two_receives(std::int32_t step) {
  return {.tag = {.step = step},
          .sends = {},
          .receives = {{.peer = 5, .local = {nullptr, 0, 8, 8}},
                       {.peer = 2, .local = {nullptr, 0, 8, 8}}}};
}

TEST(Ledger, APostingIsFoundUntilItIsComplete) {
  Ledger ledger(3, {});
  const auto posting = ledger.open(two_receives(7));
  EXPECT_EQ(ledger.find(Ledger::handle(*posting)), posting);
  EXPECT_EQ(ledger.first_open(), describe(posting->exchange().tag));
  ledger.arm(*posting);
  for (std::size_t i = 0; i < 2; ++i) {
    ledger.came(*posting, i);
    ledger.finished(*posting, i);
  }
  EXPECT_EQ(ledger.find(Ledger::handle(*posting)), nullptr);
  EXPECT_THAT(ledger.first_open(), IsEmpty());
  ledger.await(*posting);
  EXPECT_THROW(ledger.find({1}), InternalError);
}

TEST(Ledger, RecordsComeInTheOrderOfOpening) {
  Ledger ledger(0, {});
  const auto first = ledger.open({.tag = {.step = 1}, .sends = {}, .receives = {}});
  const auto second = ledger.open({.tag = {.step = 2}, .sends = {}, .receives = {}});
  ledger.arm(*second);
  ledger.arm(*first);
  const auto records = ledger.take_records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].tag.step, 1);
  EXPECT_EQ(records[1].tag.step, 2);
}

TEST(Ledger, OnlyArmedPostingsThatMissAPeerBecomeOverdue) {
  Ledger ledger(3, kSoon);
  const auto posting = ledger.open(two_receives(7));
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_THAT(ledger.overdue_report(), IsEmpty());
  ledger.arm(*posting);
  std::this_thread::sleep_until(ledger.next_overdue());
  EXPECT_THAT(ledger.overdue_report(),
              HasSubstr("worker 3 waited 1 ms for workers 2, 5 in " + describe({.step = 7})));
  ledger.came(*posting, 0);
  EXPECT_THAT(ledger.overdue_report(), HasSubstr("for worker 2 in"));
  ledger.came(*posting, 1);
  EXPECT_THAT(ledger.overdue_report(), IsEmpty());
}

TEST(Ledger, AnUnlimitedDeadlineDoesNotOverflow) {
  Ledger ledger(0, {.deadline = std::chrono::milliseconds::max()});
  ledger.arm(*ledger.open(two_receives(0)));
  EXPECT_GT(ledger.next_overdue(), std::chrono::steady_clock::now());
  EXPECT_THAT(ledger.overdue_report(), IsEmpty());
}

TEST(Ledger, TheFirstCauseIsReported) {
  Ledger ledger(4, {});
  const auto posting = ledger.open(two_receives(1));
  ledger.throw_if_failed();
  ledger.fail("worker 2 died");
  ledger.fail("worker 5 died");
  try {
    ledger.await(*posting);
    FAIL() << "a failed posting was awaited without an error";
  } catch (const TransportError& error) {
    EXPECT_EQ(std::string(error.what()),
              "worker 4 gave up " + describe({.step = 1}) + ": worker 2 died");
  }
  EXPECT_THROW(ledger.throw_if_failed(), TransportError);
}

TEST(Ledger, AFailureIsNotReportedWhileMemoryIsHeld) {
  Ledger ledger(0, {});
  const auto posting = ledger.open(two_receives(1));
  ledger.hold();
  ledger.fail("a reason");
  EXPECT_NO_THROW(ledger.throw_if_failed());
  std::atomic<bool> touching = true;
  std::thread mover([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    touching = false;
    ledger.release();
  });
  EXPECT_THROW(ledger.await(*posting), TransportError);
  EXPECT_FALSE(touching);
  mover.join();
  ledger.settle();
}

}  // namespace
}  // namespace libra
