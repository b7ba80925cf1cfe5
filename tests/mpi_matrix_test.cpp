// A smaller matrix on MPI: a program for mpirun with 4 ranks, each a worker, that compares its own
// rows and heads with plain attention. One transport serves all plans, one after the other, as it
// does in training. Rank 0 prints, the others only what fails.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "libra/runtime/random_pools.h"
#include "libra/transport/mpi/transport.h"
#include "tests/layer_driver.h"
#include "tests/seat.h"

namespace libra::testing {
namespace {

Transport* g_transport = nullptr;

struct Layout {
  const char* name;
  HomeKind home;
  std::int32_t tp;
};
constexpr Layout kLayouts[] = {{"contiguous", HomeKind::kContiguous, 1},
                               {"zigzag_row", HomeKind::kZigzagRow, 1},
                               {"zigzag_document", HomeKind::kZigzagDocument, 1},
                               {"head_range", HomeKind::kContiguous, 2}};

std::vector<PackedSequence> sequences(std::int32_t replicas) {
  const std::vector<std::vector<std::int64_t>> samples = {{41}, {7, 9, 2, 0, 1, 1, 5}, {1, 30}, {}};
  std::vector<PackedSequence> result;
  result.reserve(static_cast<std::size_t>(replicas));
  for (std::int32_t replica = 0; replica < replicas; ++replica) {
    result.push_back({41, samples[static_cast<std::size_t>(replica)]});
  }
  return result;
}

PlanOptions options_of(const Layout& layout, std::int32_t cp) {
  PlanOptions options;
  options.shape = {8, 4, 6, 4};
  options.storage = DType::kFp64;
  options.cp = cp;
  options.tp = layout.tp;
  options.home = layout.home;
  options.block_tokens = 8;
  options.return_lse = true;
  return options;
}

void expect_own_share_exact(const PoolPlan& plan, std::uint64_t seed) {
  LayerDriver layer(plan, g_transport->worker(), seed);
  Seat seat(*g_transport);
  const auto pipeliner = seat.pipeliner(plan);
  layer.forward(*pipeliner, seat.stream);
  layer.backward(*pipeliner, seat.stream);
  seat.stream.synchronize();
  EXPECT_EQ(layer.wrong_in_forward() + layer.wrong_in_backward(), "");
}

class MpiMatrix : public ::testing::TestWithParam<std::tuple<Layout, std::int32_t, BackwardMode>> {
};

// body(seed) for every H, M and number of KV heads, set in `options`.
template <typename Body>
void for_all_heads(PlanOptions& options, const Body& body) {
  std::uint64_t seed = 0;
  for (const std::int32_t head_shards : {2, 4}) {
    for (const std::int32_t chunks : {1, 2}) {
      for (const std::int32_t kv_heads : {8, 2}) {
        options.head_shards = head_shards;
        options.chunks = chunks;
        options.shape.kv_heads = kv_heads;
        SCOPED_TRACE(fmt::format("H {} M {} kv {}", head_shards, chunks, kv_heads));
        body(++seed);
      }
    }
  }
}

TEST_P(MpiMatrix, EqualsPlainAttention) {
  const auto& [layout, cp, backward] = GetParam();
  PlanOptions options = options_of(layout, cp);
  options.backward = backward;
  for_all_heads(options, [&options, replicas = 4 / cp](std::uint64_t seed) {
    const PoolPlan plan = make_plan(options, sequences(replicas));
    Rng rng(seed);
    expect_own_share_exact(seed % 2 == 0 ? plan : scattered(plan, rng), seed);
  });
}

// Two nodes of two workers, which pass keys on to each other.
TEST_P(MpiMatrix, EqualsPlainAttentionWithRelays) {
  const auto& [layout, cp, backward] = GetParam();
  PlanOptions options = options_of(layout, cp);
  options.backward = backward;
  options.node_fetch = true;
  options.gpus_per_node = 2;
  int relayed = 0;
  for_all_heads(options, [&, replicas = 4 / cp](std::uint64_t seed) {
    Rng rng(seed);
    const PoolPlan plan = scattered(make_plan(options, sequences(replicas)), rng);
    relayed += has_relays(plan.exchange) ? 1 : 0;
    expect_own_share_exact(plan, seed);
  });
  EXPECT_GT(relayed, 0);
}

// A head-range home needs two workers per sequence.
std::vector<std::tuple<Layout, std::int32_t, BackwardMode>> combinations() {
  std::vector<std::tuple<Layout, std::int32_t, BackwardMode>> result;
  for (const Layout& layout : kLayouts) {
    for (const std::int32_t cp : {1, 2, 4}) {
      if (cp < layout.tp) continue;
      result.emplace_back(layout, cp, BackwardMode::kKeep);
      result.emplace_back(layout, cp, BackwardMode::kRefetch);
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, MpiMatrix, ::testing::ValuesIn(combinations()), [](const auto& test) {
  return fmt::format("{}_cp{}_{}", std::get<0>(test.param).name, std::get<1>(test.param),
                     backward_name(std::get<2>(test.param)));
});

class PrintFailures final : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", g_transport->worker(), result.file_name(),
                 result.line_number(), result.message());
  }
};

int run(int* argc, char** argv, const MpiSession& session) {
  ::testing::InitGoogleTest(argc, argv);
  const std::unique_ptr<Transport> transport = make_mpi_transport(session);
  g_transport = transport.get();
  if (session.rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(std::make_unique<PrintFailures>().release());
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace libra::testing

int main(int argc, char** argv) {
  const libra::MpiSession session(&argc, &argv);
  return libra::testing::run(&argc, argv, session);
}
