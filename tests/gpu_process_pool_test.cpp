// Whole pools on GPUs by processes as workers, which is how trainers run: copies over CUDA IPC,
// streams that wait for flags. The error against fp64 is at most twice that of a dense bf16
// computation.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "libra/attention/cudnn/cudnn_attention.h"
#include "libra/base/index.h"
#include "libra/cuda/device.h"
#include "libra/runtime/cuda_memory_space.h"
#include "libra/runtime/random_pools.h"
#include "libra/runtime/sharding.h"
#include "libra/runtime/worker_run.h"
#include "libra/transport/peer/peer_process.h"
#include "tests/crew.h"
#include "tests/dense_attention.h"
#include "tests/deviation.h"

namespace libra::testing {
namespace {

constexpr double kScale = 0.125;
constexpr std::int32_t kPools = 4;  // run one after the other on one transport
constexpr std::size_t kTensors = std::size(kJudged);

/// Of one worker's rows and heads in one pool.
struct Found {
  std::array<Deviation, kTensors> ours, reference;
};

HeadKind kind_of(std::size_t judged) {
  return judged < 3 ? HeadKind::kQuery : HeadKind::kKv;  // O, LSE, dQ; dK, dV
}

PoolPlan random_gpu_plan(Rng& rng, std::int32_t replicas, std::int32_t cp) {
  PlanOptions options;
  options.shape = {8, rng.below(2) == 0 ? 2 : 8, 64, 64};
  options.cp = cp;
  options.home = static_cast<HomeKind>(rng.below(3));
  options.block_tokens = rng.below(2) == 0 ? 37 : 64;
  options.chunks = rng.below(2) == 0 ? 2 : 4;
  options.head_shards = 2;
  options.backward = rng.below(2) == 0 ? BackwardMode::kKeep : BackwardMode::kRefetch;
  options.return_lse = true;
  options.node_fetch = rng.below(2) == 0;
  options.gpus_per_node = 2;
  std::vector<PackedSequence> sequences;
  sequences.reserve(at(replicas));
  for (std::int32_t r = 0; r < replicas; ++r) sequences.push_back(random_sequence(rng, 400));
  // One sample that is long enough for both to round: alone, tiny ones may be exact.
  sequences.front().tokens += 50;
  sequences.front().sample_tokens.push_back(50);
  return dealt_round(make_plan(options, sequences));
}

Found deviations(const PoolPlan& plan, std::int32_t worker, const SequenceTensors& inputs,
                 const LayerOutputs& own) {
  const PackedSequence& sequence = plan.sequences[at(worker / plan.options.cp)];
  const LayerOutputs truth = dense_attention(sequence, inputs, kScale);
  const LayerOutputs reference = dense_attention_in_bf16(sequence, inputs, kScale);
  Found found;
  for (std::size_t i = 0; i < kTensors; ++i) {
    const auto tensor = kJudged[i].tensor;
    const HostTensor wanted = shard_of(plan, worker, truth.*tensor, kind_of(i));
    found.ours[i].add(wanted, own.*tensor);
    found.reference[i].add(wanted, shard_of(plan, worker, reference.*tensor, kind_of(i)));
  }
  return found;
}

/// What processes write and the parent reads.
struct Board {
  explicit Board(std::int32_t workers) : found(at(kPools * workers)), ran(at(workers)) {}
  SharedArray<Found> found;
  SharedArray<bool> ran;
};

class GpuProcessPool
    : public ::testing::TestWithParam<std::tuple<std::int32_t, std::int32_t, bool>> {
 protected:
  void run_worker(std::int32_t worker, std::uint64_t seed, Board& board) const {
    if (device_count() == 0) return;
    const auto [replicas, cp, one_queue] = GetParam();
    const std::int32_t workers = replicas * cp, device = worker % device_count();
    const DeviceGuard guard(device);
    const auto transport =
        make_peer_process({fmt::format("pool-test-{}-{}-{}", getppid(), seed, workers), worker,
                           workers, device, one_queue},
                          {});
    CudnnAttention attention(device);
    const auto memory = make_cuda_memory(device);
    Rng rng(seed);
    std::int32_t step = 0;
    for (std::int32_t pool = 0; pool < kPools; ++pool) {
      const PoolPlan plan = random_gpu_plan(rng, replicas, cp);
      const SequenceTensors inputs = random_inputs(plan, worker / cp, seed);
      WorkerRun run(plan, {*transport, attention, *memory, step});
      run.execute(inputs, kScale);
      step = run.next_step();
      board.found[at(pool * workers + worker)] = deviations(plan, worker, inputs, run.outputs());
    }
    board.ran[at(worker)] = true;
  }
};

// Over all workers together: a tiny share may be exact by luck.
void expect_within_twice_bf16(Board& board, std::int32_t pool, std::int32_t workers) {
  for (std::size_t i = 0; i < kTensors; ++i) {
    Deviation ours, reference;
    for (std::int32_t worker = 0; worker < workers; ++worker) {
      const Found& found = board.found[at(pool * workers + worker)];
      ours.error = std::max(ours.error, found.ours[i].error);
      ours.largest = std::max(ours.largest, found.ours[i].largest);
      reference.error = std::max(reference.error, found.reference[i].error);
    }
    EXPECT_LE(ours.error, allowed_error(kJudged[i], ours, reference))
        << kJudged[i].name << " of pool " << pool;
  }
}

TEST_P(GpuProcessPool, ErrorIsAtMostTwiceThatOfADenseBf16Computation) {
  const auto [replicas, cp, one_queue] = GetParam();
  const std::int32_t workers = replicas * cp;
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Board board(workers);
  Crew(Crew::Kind::kProcesses, workers).run([&](std::int32_t worker) {
    run_worker(worker, seed, board);
  });
  if (!board.ran[0]) GTEST_SKIP() << "no GPU that a process can use";
  for (std::int32_t pool = 0; pool < kPools; ++pool) {
    expect_within_twice_bf16(board, pool, workers);
  }
}

std::string name_of(
    const ::testing::TestParamInfo<std::tuple<std::int32_t, std::int32_t, bool>>& test) {
  const auto [replicas, cp, one_queue] = test.param;
  return fmt::format("p{}_cp{}_{}", replicas, cp, one_queue ? "one_queue" : "ahead");
}

INSTANTIATE_TEST_SUITE_P(PxCP, GpuProcessPool,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::Values(1, 2),
                                            ::testing::Bool()),
                         name_of);

// Seven peers each, as on a machine of eight GPUs: more than there are hardware queues to wait in.
INSTANTIATE_TEST_SUITE_P(EightWorkers, GpuProcessPool, ::testing::Values(std::tuple(4, 2, false)),
                         name_of);

}  // namespace
}  // namespace libra::testing
