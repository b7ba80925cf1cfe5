#include "libra/runtime/routes.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "libra/base/index.h"
#include "libra/runtime/host_tensor.h"
#include "libra/runtime/random_pools.h"
#include "libra/runtime/tensor_views.h"

namespace libra {
namespace {

struct Worker {
  WorkerProgram program;
  Routes routes;
  HostTensor queries;  // an own tensor with query heads, of Q's shape
  HostTensor keys;
  std::vector<std::byte> arena;

  Worker(const PoolPlan& plan, std::int32_t worker)
      : program(make_worker_program(plan, worker)),
        routes(plan, program, plan_memory(plan)),
        queries(program.rows, program.q_heads, plan.options.shape.head_dim, DType::kFp64),
        keys(program.rows, program.kv_heads, plan.options.shape.head_dim, DType::kFp64),
        arena(at(routes.memory().arena.bytes)) {}
};

// All that one worker posts in one phase, both ends of each transfer.
using PhaseOf = void (*)(Worker& worker, std::int32_t chunk, Exchange& exchange);

void query_dispatch(Worker& w, std::int32_t chunk, Exchange& exchange) {
  w.routes.send_queries(exchange, w.queries.view(), &ArenaLayout::q, chunk);
  w.routes.receive_queries(exchange, &ArenaLayout::q, chunk, w.arena.data());
}

void key_dispatch(Worker& w, std::int32_t chunk, Exchange& exchange) {
  const std::int32_t kv_chunk = w.routes.heads().kv_chunk_of(chunk);
  w.routes.send_keys(exchange, w.keys.view(), &ArenaLayout::k, kv_chunk);
  w.routes.receive_keys(exchange, &ArenaLayout::k, kv_chunk, w.arena.data());
}

void query_return(Worker& w, std::int32_t chunk, Exchange& exchange) {
  w.routes.return_sends(exchange, &ArenaLayout::dq, chunk, w.arena.data());
  w.routes.return_receives(exchange, w.queries.view(), &ArenaLayout::dq, chunk);
}

void gradient_return(Worker& w, std::int32_t chunk, Exchange& exchange) {
  const std::int32_t kv_chunk = w.routes.heads().kv_chunk_of(chunk);
  w.routes.send_gradients(exchange, &ArenaLayout::dk, kv_chunk, w.arena.data());
  w.routes.receive_gradients(exchange, &ArenaLayout::dk, &ArenaLayout::dk_home, kv_chunk,
                             w.arena.data());
}

void passing_on(Worker& w, std::int32_t chunk, Exchange& exchange) {
  const std::int32_t kv_chunk = w.routes.heads().kv_chunk_of(chunk);
  w.routes.pass_on_keys(exchange, &ArenaLayout::k, kv_chunk, w.arena.data());
  w.routes.receive_passed_keys(exchange, &ArenaLayout::k, kv_chunk, w.arena.data());
}

void shares(Worker& w, std::int32_t chunk, Exchange& exchange) {
  const std::int32_t kv_chunk = w.routes.heads().kv_chunk_of(chunk);
  w.routes.send_shares(exchange, &ArenaLayout::dk, kv_chunk, w.arena.data());
  w.routes.receive_shares(exchange, &ArenaLayout::dk, &ArenaLayout::dk_relay, kv_chunk,
                          w.arena.data());
}

std::vector<Transfer> with_peer(const std::vector<Transfer>& transfers, std::int32_t peer) {
  std::vector<Transfer> result;
  for (const Transfer& transfer : transfers) {
    if (transfer.peer == peer) result.push_back(transfer);
  }
  return result;
}

// Where one end says that the other one's rows are, they are.
void expect_at(const Transfer& one, const Transfer& other, Worker& owner_of_other) {
  if (one.peer_arena_offset < 0) return;
  EXPECT_EQ(owner_of_other.arena.data() + one.peer_arena_offset, other.local.data);
}

void expect_both_ends_agree(std::deque<Worker>& workers, const std::vector<Exchange>& exchanges) {
  for (std::size_t from = 0; from < workers.size(); ++from) {
    for (std::size_t to = 0; to < workers.size(); ++to) {
      const auto sends = with_peer(exchanges[from].sends, static_cast<std::int32_t>(to));
      const auto receives = with_peer(exchanges[to].receives, static_cast<std::int32_t>(from));
      ASSERT_EQ(sends.size(), receives.size()) << from << " to " << to;
      for (std::size_t i = 0; i < sends.size(); ++i) {
        EXPECT_EQ(sends[i].local.bytes(), receives[i].local.bytes());
        EXPECT_GT(sends[i].local.bytes(), 0);
        EXPECT_NE(sends[i].peer_arena_offset < 0, receives[i].peer_arena_offset < 0)
            << "exactly one end lies in an arena that the other one is told of";
        expect_at(sends[i], receives[i], workers[to]);
        expect_at(receives[i], sends[i], workers[from]);
      }
    }
  }
}

bool inside(const StridedView& view, const std::byte* begin, std::size_t bytes) {
  return view.data >= begin &&
         view.data + (view.rows - 1) * view.stride_bytes + view.row_bytes <= begin + bytes;
}

bool inside(const StridedView& view, Worker& w) {
  const StridedView queries = as_rows(w.queries.view());
  const StridedView keys = as_rows(w.keys.view());
  return inside(view, w.arena.data(), w.arena.size()) ||
         inside(view, queries.data, at(queries.bytes())) ||
         inside(view, keys.data, at(keys.bytes()));
}

void expect_within_memory(const Exchange& exchange, Worker& worker) {
  for (const auto& transfers : {exchange.sends, exchange.receives}) {
    for (const Transfer& transfer : transfers) EXPECT_TRUE(inside(transfer.local, worker));
  }
}

void check_plan(const PoolPlan& plan, PhaseOf phase) {
  std::deque<Worker> workers;  // routes refer to their program
  for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
    workers.emplace_back(plan, worker);
  }
  for (std::int32_t chunk = 0; chunk < plan.options.chunks; ++chunk) {
    std::vector<Exchange> exchanges(workers.size());
    for (std::size_t worker = 0; worker < workers.size(); ++worker) {
      phase(workers[worker], chunk, exchanges[worker]);
      expect_within_memory(exchanges[worker], workers[worker]);
    }
    ASSERT_NO_FATAL_FAILURE(expect_both_ends_agree(workers, exchanges));
  }
}

class EveryPhase : public ::testing::TestWithParam<PhaseOf> {};

TEST_P(EveryPhase, BothEndsListTheSameTransfersAndKnowWhereTheOtherLies) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    check_plan(testing::random_plan(seed, 60), GetParam());
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Routes, EveryPhase,
                         ::testing::Values(query_dispatch, key_dispatch, query_return,
                                           gradient_return, passing_on, shares));

// Two replicas of 4 tokens, 4 query heads over 2 KV heads, H 1, M 2; all of replica 1 is computed
// at worker 0.
PoolPlan all_at_worker_0() {
  PlanOptions options;
  options.shape = {4, 2, 2, 2};
  options.storage = DType::kFp64;
  options.head_shards = 1;
  options.chunks = 2;
  return testing::with_tiles_at(make_plan(options, {{4, {4}}, {4, {4}}}), {0, 0});
}

TEST(Routes, AChunkSendsItsHeadsOfEveryRow) {
  Worker home(all_at_worker_0(), 1);
  Exchange exchange;
  query_dispatch(home, 1, exchange);
  ASSERT_EQ(exchange.sends.size(), 1U);
  const Transfer& sent = exchange.sends[0];
  EXPECT_EQ(sent.peer, 0);
  EXPECT_EQ(sent.local.data, as_rows(home.queries.view()).data + 2 * 2 * 8) << "heads 2 and 3";
  EXPECT_EQ(sent.local.rows, 4);
  EXPECT_EQ(sent.local.row_bytes, 2 * 2 * 8);
  EXPECT_EQ(sent.local.stride_bytes, 4 * 2 * 8);
}

TEST(Routes, HeadsOfAShardAndChunkAreCountedFromTheHomesFirst) {
  PlanOptions options;
  options.shape = {16, 8, 2, 2};
  options.cp = options.tp = 2;
  options.head_shards = 4;
  options.chunks = 2;
  const Worker second_half(make_plan(options, {{4, {4}}}), 1);
  EXPECT_EQ(second_half.routes.own_q_head(2, 0), 0);
  EXPECT_EQ(second_half.routes.own_q_head(3, 1), 6);
  EXPECT_EQ(second_half.routes.own_kv_head(2, 1), 1);
  EXPECT_EQ(second_half.routes.own_kv_head(3, 0), 2);
}

}  // namespace
}  // namespace libra
