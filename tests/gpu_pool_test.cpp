// Whole pools on GPUs, forward and backward in bf16, by threads as workers that share the GPUs at
// hand: the error against fp64 is at most twice that of a dense bf16 computation.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "libra/attention/cudnn/cudnn_attention.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/cuda/device.h"
#include "libra/runtime/cuda_memory_space.h"
#include "libra/runtime/pool_run.h"
#include "libra/runtime/random_pools.h"
#include "libra/transport/peer/peer_group.h"
#include "tests/compare_outputs.h"
#include "tests/dense_attention.h"
#include "tests/deviation.h"
#include "tests/pool_check.h"

namespace libra::testing {
namespace {

constexpr double kScale = 0.125;

/// A GPU worker for each of a pool's.
class GpuCrew {
 public:
  explicit GpuCrew(std::int32_t workers, const TransportOptions& options = {}) {
    for (std::int32_t w = 0; w < workers; ++w) devices_.push_back(w % device_count());
    endpoints_ = make_peer_group(devices_, options);
    for (std::size_t w = 0; w < devices_.size(); ++w) {
      attention_.push_back(std::make_unique<CudnnAttention>(devices_[w]));
      memory_.push_back(make_cuda_memory(devices_[w]));
      sites_.push_back({*endpoints_[w], *attention_[w], *memory_[w]});
    }
  }

  PoolRun run(const PoolPlan& plan, const std::vector<SequenceTensors>& inputs,
              const WholeLimits& limits = {}) const {
    std::vector<WorkerSite> sites = sites_;
    for (WorkerSite& site : sites) site.whole_limits = limits;
    return run_pool(plan, sites, inputs, kScale);
  }
  const std::vector<WorkerSite>& sites() const { return sites_; }

 private:
  std::vector<std::int32_t> devices_;
  std::vector<std::unique_ptr<Transport>> endpoints_;
  std::vector<std::unique_ptr<CudnnAttention>> attention_;
  std::vector<std::unique_ptr<MemorySpace>> memory_;
  std::vector<WorkerSite> sites_;
};

PlanOptions random_options(Rng& rng, std::int32_t cp) {
  const auto pick = [&rng](std::initializer_list<std::int32_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(rng.below(values.size())));
  };
  PlanOptions options;
  const std::int32_t dim = pick({64, 128});
  options.shape = {8, pick({1, 2, 8}), dim, dim};
  options.cp = cp;
  options.home = static_cast<HomeKind>(rng.below(3));
  options.block_tokens = pick({37, 64, 200});
  options.head_shards = pick({1, 2, 4});
  options.chunks = pick({1, 2});
  options.placer = rng.below(2) == 0 ? PlacerKind::kPaper : PlacerKind::kReserve;
  options.fetch = rng.below(2) == 0 ? Fetch::kWhole : Fetch::kPrefix;
  options.backward = rng.below(2) == 0 ? BackwardMode::kKeep : BackwardMode::kRefetch;
  options.local_first = rng.below(3) != 0;
  options.return_lse = true;
  return options;
}

std::vector<PackedSequence> random_sequences(Rng& rng, std::int32_t replicas) {
  std::vector<PackedSequence> sequences;
  sequences.reserve(at(replicas));
  for (std::int32_t replica = 0; replica < replicas; ++replica) {
    sequences.push_back(random_sequence(rng, 400));
  }
  // One sample that is long enough for both to round: dQ and dK of single tokens are exactly zero
  // in the reference alone.
  sequences.front().tokens += 50;
  sequences.front().sample_tokens.push_back(50);
  return sequences;
}

// Over all sequences together: a tiny one may be exact by luck.
void expect_within_twice_bf16(const PoolPlan& plan, const std::vector<SequenceTensors>& inputs,
                              const PoolRun& run) {
  std::vector<LayerOutputs> truths, references;
  for (std::size_t replica = 0; replica < inputs.size(); ++replica) {
    truths.push_back(dense_attention(plan.sequences[replica], inputs[replica], kScale));
    references.push_back(dense_attention_in_bf16(plan.sequences[replica], inputs[replica], kScale));
  }
  for (const Judged& judged : kJudged) {
    Deviation ours, reference;
    for (std::size_t replica = 0; replica < inputs.size(); ++replica) {
      ours.add(truths[replica].*judged.tensor, run.sequences[replica].*judged.tensor);
      reference.add(truths[replica].*judged.tensor, references[replica].*judged.tensor);
    }
    EXPECT_LE(ours.error, allowed_error(judged, ours, reference)) << judged.name;
  }
}

class GpuPool : public ::testing::TestWithParam<std::tuple<std::int32_t, std::int32_t>> {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no GPU that this process can use";
  }
};

struct Drawn {
  PoolPlan plan;
  WholeLimits limits;
};

// Pools from fresh seeds, drawn by `draw(rng)`.
template <typename Draw>
void judge_fresh_pools(std::int32_t workers, std::uint64_t pools, const Draw& draw) {
  const std::uint64_t first = std::random_device{}();
  const GpuCrew crew(workers);
  for (std::uint64_t seed = first; seed < first + pools; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    const Drawn drawn = draw(rng);
    const std::vector<SequenceTensors> inputs = random_pool_inputs(drawn.plan, seed);
    expect_within_twice_bf16(drawn.plan, inputs, crew.run(drawn.plan, inputs, drawn.limits));
  }
}

TEST_P(GpuPool, ErrorIsAtMostTwiceThatOfADenseBf16Computation) {
  const auto [replicas, cp] = GetParam();
  judge_fresh_pools(replicas * cp, 6, [replicas = replicas, cp = cp](Rng& rng) {
    const PlanOptions options = random_options(rng, cp);
    return Drawn{scattered(make_plan(options, random_sequences(rng, replicas)), rng), {}};
  });
}

// Nodes of two workers by force, and KV chunks enough that slots of keys are used again.
TEST_P(GpuPool, ErrorIsAsSmallWithRelays) {
  const auto [replicas, cp] = GetParam();
  judge_fresh_pools(replicas * cp, 4, [replicas = replicas, cp = cp](Rng& rng) {
    PlanOptions options = random_options(rng, cp);
    options.shape.kv_heads = 8;
    options.head_shards = 1;
    options.chunks = 4;
    options.node_fetch = true;
    options.gpus_per_node = 2;
    return Drawn{scattered(make_plan(options, random_sequences(rng, replicas)), rng), {}};
  });
}

Drawn draw_with_whole_samples(Rng& rng, std::int32_t replicas, std::int32_t cp) {
  PlanOptions options = random_options(rng, cp);
  options.home = HomeKind::kContiguous;
  options.local_first = true;
  for (;;) {
    const PoolPlan plan = mostly_at_home(make_plan(options, random_sequences(rng, replicas)), rng);
    const WholeLimits limits{between(rng, 50, 400), between(rng, 1, 100)};
    if (whole_samples(plan, limits) > 0) return {plan, limits};
  }
}

TEST_P(GpuPool, ErrorIsAsSmallWithWholeSamples) {
  const auto [replicas, cp] = GetParam();
  judge_fresh_pools(replicas * cp, 6, [replicas = replicas, cp = cp](Rng& rng) {
    return draw_with_whole_samples(rng, replicas, cp);
  });
}

TEST_P(GpuPool, TheSameRunGivesTheSameForwardBits) {
  const auto [replicas, cp] = GetParam();
  const GpuCrew crew(replicas * cp);
  Rng rng(3);
  const PoolPlan plan =
      scattered(make_plan(random_options(rng, cp), random_sequences(rng, replicas)), rng);
  const std::vector<SequenceTensors> inputs = random_pool_inputs(plan, 3);
  const PoolRun one = crew.run(plan, inputs), two = crew.run(plan, inputs);
  for (std::size_t replica = 0; replica < inputs.size(); ++replica) {
    EXPECT_EQ(first_difference("O", one.sequences[replica].o, two.sequences[replica].o, 0), "");
  }
}

INSTANTIATE_TEST_SUITE_P(PxCP, GpuPool,
                         ::testing::Combine(::testing::Values(1, 2, 4, 8), ::testing::Values(1, 2)),
                         [](const auto& test) {
                           return fmt::format("p{}_cp{}", std::get<0>(test.param),
                                              std::get<1>(test.param));
                         });

class GpuPoolFailure : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no GPU that this process can use";
  }
};

TEST_F(GpuPoolFailure, AWorkerThatDoesNotComeIsNamedWithinTheDeadline) {
  const GpuCrew crew(2, {std::chrono::milliseconds(500)});
  PlanOptions options;
  options.shape = {8, 2, 64, 64};
  const PoolPlan plan = make_plan(options, {{64, {64}}, {64, {7}}});
  try {
    WorkerRun run(plan, crew.sites()[0]);
    FAIL() << "worker 1 was not missed";
  } catch (const TransportError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("worker 1"));
  }
}

}  // namespace
}  // namespace libra::testing
