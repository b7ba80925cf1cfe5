#include "libra/runtime/worker_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/runtime/pool_run.h"
#include "libra/runtime/random_pools.h"
#include "libra/runtime/worker_threads.h"
#include "libra/transport/inproc/transport.h"

namespace libra {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

PlanOptions small_options() {
  PlanOptions options;
  options.shape = {4, 2, 4, 4};
  options.storage = DType::kFp64;
  options.block_tokens = 4;
  options.head_shards = 2;
  options.chunks = 2;
  return options;
}

std::vector<PackedSequence> two_sequences() { return {{16, {16}}, {16, {2, 2, 2}}}; }

bool same(const HostTensor& a, const HostTensor& b) {
  for (std::int64_t row = 0; row < a.rows(); ++row) {
    for (std::int32_t head = 0; head < a.heads(); ++head) {
      for (std::int32_t c = 0; c < a.dim(); ++c) {
        if (a.get(row, head, c) != b.get(row, head, c)) return false;
      }
    }
  }
  return true;
}

TEST(RandomInputs, DependOnSeedAndReplicaAndNotOnTheDivision) {
  PlanOptions divided = small_options();
  divided.cp = 2;
  divided.home = HomeKind::kZigzagRow;
  const PoolPlan a = make_plan(small_options(), two_sequences());
  const PoolPlan b = make_plan(divided, two_sequences());
  EXPECT_TRUE(same(random_inputs(a, 1, 5).v, random_inputs(b, 1, 5).v));
  EXPECT_FALSE(same(random_inputs(a, 1, 5).v, random_inputs(a, 0, 5).v));
  EXPECT_FALSE(same(random_inputs(a, 1, 5).v, random_inputs(a, 1, 6).v));
  EXPECT_FALSE(same(random_inputs(a, 1, 5).k, random_inputs(a, 1, 5).v));
}

std::vector<std::string> names_of(const WorkerTrace& worker) {
  std::vector<std::string> names;
  names.reserve(worker.events.size());
  for (const Event& event : worker.events) names.push_back(event.name);
  return names;
}

TEST(RunPool, TracesWhatEveryWorkerDid) {
  const PoolPlan plan = testing::with_tiles_at(make_plan(small_options(), two_sequences()),
                                               std::vector<std::int32_t>(12, 1));
  auto endpoints = make_inproc_group(2, {});
  ReferenceAttention attention;
  const PoolRun run =
      run_pool(plan, host_sites(endpoints, attention), random_pool_inputs(plan, 1), 0.5);
  ASSERT_THAT(run.workers, SizeIs(2));
  EXPECT_THAT(
      names_of(run.workers[0]),
      ::testing::ElementsAre("backward clear", "backward others' share", "backward convert"))
      << "it computes nothing, but it owns gradients";
  EXPECT_THAT(names_of(run.workers[1]),
              ::testing::ElementsAre("forward local",                         //
                                     "forward keep inputs", "forward chunk",  //
                                     "forward keep results",                  //
                                     "forward keep inputs", "forward chunk",  //
                                     "forward keep results",                  //
                                     "backward clear", "backward local",      //
                                     "backward chunk", "backward chunk",      //
                                     "backward convert"));
  EXPECT_GT(run.workers[1].busy_seconds, run.workers[0].busy_seconds);
  EXPECT_EQ(run.workers[0].records.size(), run.workers[1].records.size())
      << "a worker with nothing to do joins every exchange";
  EXPECT_THAT(run.sequences, SizeIs(2));
}

TEST(RunPool, ThrowsWhatAWorkerThrew) {
  const PoolPlan plan = make_plan(small_options(), two_sequences());
  auto endpoints = make_inproc_group(3, {});
  ReferenceAttention attention;
  EXPECT_THROW(run_pool(plan, host_sites(endpoints, attention), random_pool_inputs(plan, 1), 0.5),
               ConfigError);
}

TEST(WorkerRun, CanExecuteAgain) {
  const PoolPlan plan = make_plan(small_options(), two_sequences());
  const auto endpoints = make_inproc_group(2, {});
  ReferenceAttention attention;
  const auto errors = testing::on_every_worker(endpoints, [&](Transport& transport) {
    const SequenceTensors inputs = random_inputs(plan, transport.worker(), 3);
    WorkerRun run(plan, {transport, attention});
    run.execute(inputs, 0.5);
    const LayerOutputs first = run.outputs();
    const std::size_t exchanges = run.records().size();
    run.execute(inputs, 0.5);
    EXPECT_TRUE(same(first.o, run.outputs().o));
    EXPECT_TRUE(same(first.dk, run.outputs().dk));
    EXPECT_LE(run.records().size(), exchanges) << "records are of the last execution";
  });
  EXPECT_THAT(errors, Each(::testing::IsEmpty()));
}

}  // namespace
}  // namespace libra
