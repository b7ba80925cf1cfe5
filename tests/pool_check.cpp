#include "tests/pool_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/index.h"
#include "libra/plan/validate.h"
#include "libra/transport/inproc/transport.h"
#include "tests/compare_outputs.h"
#include "tests/dense_attention.h"

namespace libra::testing {
namespace {

// A tile's queries are in its sample's sequence; its heads are those of its shard.
void forget_lse(const PoolPlan& plan, std::int32_t tile, LayerOutputs& outputs) {
  const std::int32_t shard_heads = plan.heads().shard_heads;
  const std::int32_t first = plan.tiling.shard_of(tile) * shard_heads;
  for (const Piece& piece : plan.tiling.pieces_of(plan.tiling.block_of(tile))) {
    const std::int64_t begin = plan.layout.samples[at(piece.sample)].begin;
    for (std::int64_t query = piece.queries.begin; query < piece.queries.end; ++query) {
      for (std::int32_t head = first; head < first + shard_heads; ++head) {
        outputs.lse.set(begin + query, head, 0, std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
}

}  // namespace

PoolRun run_inproc(const PoolPlan& plan, const std::vector<SequenceTensors>& inputs,
                   const WholeLimits& limits) {
  ReferenceAttention backend;
  auto endpoints = make_inproc_group(plan.workers(), {});
  std::vector<WorkerSite> sites = host_sites(endpoints, backend);
  for (WorkerSite& site : sites) site.whole_limits = limits;
  return run_pool(plan, sites, inputs, kSoftmaxScale);
}

std::int64_t whole_samples(const PoolPlan& plan, const WholeLimits& limits) {
  std::int64_t sum = 0;
  for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
    sum += std::ssize(make_worker_program(plan, worker, limits).whole);
  }
  return sum;
}

LayerOutputs expected_outputs(const PoolPlan& plan, std::int32_t replica,
                              const SequenceTensors& inputs) {
  LayerOutputs expected = dense_attention(plan.sequences[at(replica)], inputs, kSoftmaxScale);
  if (plan.options.lse_goes_home()) return expected;
  for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) {
    const std::int32_t home = plan.tiling.home_of(tile);
    if (plan.layout.part_of(home).replica != replica) continue;
    if (plan.placement.destination[at(tile)] != home) forget_lse(plan, tile, expected);
  }
  return expected;
}

void expect_exact(const PoolPlan& plan, std::uint64_t seed, const WholeLimits& limits) {
  ASSERT_TRUE(validate(plan).empty()) << validate(plan)[0].detail;
  const std::vector<SequenceTensors> inputs = random_pool_inputs(plan, seed);
  const PoolRun run = run_inproc(plan, inputs, limits);
  for (std::size_t replica = 0; replica < plan.sequences.size(); ++replica) {
    SCOPED_TRACE(fmt::format("replica {}", replica));
    expect_outputs_near(expected_outputs(plan, static_cast<std::int32_t>(replica), inputs[replica]),
                        run.sequences[replica], kTolerance);
  }
}

}  // namespace libra::testing
