#include "libra/runtime/pipeliner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/task_queue.h"
#include "libra/runtime/host_tensor.h"
#include "libra/runtime/random_pools.h"
#include "libra/transport/inproc/transport.h"

namespace libra {
namespace {

using ::testing::HasSubstr;

// Worker 1 of two computes all; it is the one that is looked at.
PoolPlan all_at_worker_1() {
  PlanOptions options;
  options.shape = {4, 2, 6, 3};
  options.storage = DType::kFp32;
  options.head_shards = 1;
  options.chunks = 2;
  return testing::with_tiles_at(make_plan(options, {{8, {8}}, {8, {5}}}), {1, 1});
}

class PipelinerArguments : public ::testing::Test {
 protected:
  static HostTensor tensor(std::int32_t heads, std::int32_t dim) {
    return {8, heads, dim, DType::kFp32};
  }

  // The ConfigError of a backward pass (which checks all that a forward pass does) after `change`.
  std::string refusal(const std::function<void(BackwardTensors&)>& change) {
    transport_.reserve_arena(pipeliner_.memory().arena.bytes);
    BackwardTensors own{q_.view(),   k_.view(),  v_.view(),  o_.view(), lse_.view(),
                        d_o_.view(), dq_.view(), dk_.view(), dv_.view()};
    change(own);
    return refusal(own, saved_.data(), scratch_.data());
  }

  std::string refusal(const BackwardTensors& own, std::byte* saved, std::byte* scratch) {
    try {
      pipeliner_.backward(own, 1.0, saved, scratch, stream_);
    } catch (const ConfigError& error) {
      EXPECT_EQ(context_.next_step, 0) << "the step is still to come";
      EXPECT_NO_THROW(transport_.poll()) << "nobody else has to give up";
      return error.what();
    }
    return "accepted";
  }

  PoolPlan plan_ = all_at_worker_1();
  std::vector<std::unique_ptr<Transport>> endpoints_ = make_inproc_group(2, {});
  Transport& transport_ = *endpoints_[1];
  ReferenceAttention attention_;
  EventLog log_;
  WorkerContext context_{attention_, transport_, log_};
  Pipeliner pipeliner_{plan_, context_};
  HostTensor q_ = tensor(4, 6), k_ = tensor(2, 6), v_ = tensor(2, 3), o_ = tensor(4, 3);
  HostTensor lse_ = tensor(4, 1), d_o_ = tensor(4, 3);
  HostTensor dq_ = tensor(4, 6), dk_ = tensor(2, 6), dv_ = tensor(2, 3);
  std::vector<std::byte> saved_ = std::vector<std::byte>(at(pipeliner_.memory().saved.bytes));
  std::vector<std::byte> scratch_ = std::vector<std::byte>(at(pipeliner_.memory().scratch.bytes));
  TaskQueue stream_;
};

TEST_F(PipelinerArguments, TensorsThatAreNotThePlansAreNamed) {
  struct Case {
    TensorView BackwardTensors::*tensor;
    const char* name;
  };
  for (const Case& c : {Case{&BackwardTensors::q, "Q"}, Case{&BackwardTensors::k, "K"},
                        Case{&BackwardTensors::v, "V"}, Case{&BackwardTensors::o, "O"},
                        Case{&BackwardTensors::lse, "LSE"}, Case{&BackwardTensors::d_o, "dO"},
                        Case{&BackwardTensors::dq, "dQ"}, Case{&BackwardTensors::dk, "dK"},
                        Case{&BackwardTensors::dv, "dV"}}) {
    const std::string begin = std::string(c.name) + " is [";
    EXPECT_THAT(refusal([&](auto& own) { (own.*c.tensor).rows = 7; }),
                ::testing::StartsWith(begin + "7, "));
    EXPECT_THAT(refusal([&](auto& own) { (own.*c.tensor).heads = 5; }), HasSubstr(begin + "8, 5,"));
    EXPECT_THAT(refusal([&](auto& own) { (own.*c.tensor).dim = 9; }), HasSubstr(", 9] fp32"));
    EXPECT_THAT(refusal([&](auto& own) { (own.*c.tensor).dtype = DType::kBf16; }),
                HasSubstr("] bf16: the plan has [8, "));
  }
}

TEST_F(PipelinerArguments, HeadsThatLieApartAreRefusedBeforeAnythingIsEnqueued) {
  for (const auto tensor :
       {&BackwardTensors::q, &BackwardTensors::k, &BackwardTensors::v, &BackwardTensors::o,
        &BackwardTensors::lse, &BackwardTensors::d_o, &BackwardTensors::dq}) {
    EXPECT_THAT(refusal([&](auto& own) { (own.*tensor).head_stride = 99; }),
                HasSubstr("has head stride 99: the heads of a row must lie one after the other"));
  }
}

TEST_F(PipelinerArguments, TooLittleMemoryIsRefused) {
  const BackwardTensors own{q_.view(),   k_.view(),  v_.view(),  o_.view(), lse_.view(),
                            d_o_.view(), dq_.view(), dk_.view(), dv_.view()};
  EXPECT_THAT(refusal(own, saved_.data(), scratch_.data()),
              HasSubstr("worker 1 has an arena of 0 B and the plan needs"));
  transport_.reserve_arena(pipeliner_.memory().arena.bytes);
  EXPECT_THAT(refusal(own, nullptr, scratch_.data()), HasSubstr("saved memory is null"));
  EXPECT_THAT(refusal(own, saved_.data(), nullptr), HasSubstr("scratch memory is null"));
}

TEST(Pipeliner, ATransportOfAnotherPoolIsRefused) {
  const PoolPlan plan = all_at_worker_1();
  const auto endpoints = make_inproc_group(3, {});
  ReferenceAttention attention;
  EventLog log;
  WorkerContext context{attention, *endpoints[0], log};
  try {
    const Pipeliner pipeliner(plan, context);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the plan is for 2 workers, the transport has 3"));
  }
}

}  // namespace
}  // namespace libra
