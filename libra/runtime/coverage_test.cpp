// Which (query, key) pairs the workers' calls cover, pair by pair, and whether gradients that are
// written have no second source: an oracle that carries labels along the plan's moves instead of
// trusting the rows that entries name.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "libra/base/index.h"
#include "libra/runtime/chunk_calls.h"
#include "libra/runtime/random_pools.h"
#include "libra/runtime/worker_program.h"

namespace libra {
namespace {

// A token of the pool (all sequences laid end to end) and the first head of its rows; head -1: none
// yet.
struct Label {
  std::int64_t token = -1;
  std::int32_t head = -1;
};

// What lies in a worker's tensors.
struct Rows {
  std::vector<Label> own;
  std::vector<Label> q_arena;   // head: first query head of the shard
  std::vector<Label> kv_arena;  // head: first KV head of the KV shard
};

std::vector<std::int64_t> sequence_begins(const PoolPlan& plan) {
  std::vector<std::int64_t> begins{0};
  for (const PackedSequence& sequence : plan.sequences) {
    begins.push_back(begins.back() + sequence.tokens);
  }
  return begins;
}

std::vector<Rows> own_rows(const PoolPlan& plan) {
  const std::vector<std::int64_t> begins = sequence_begins(plan);
  std::vector<Rows> rows(at(plan.workers()));
  for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
    const TokenPart& part = plan.layout.part_of(worker);
    for (const TokenRange run : part.runs) {
      for (std::int64_t token = run.begin; token < run.end; ++token) {
        rows[at(worker)].own.push_back({begins[at(part.replica)] + token, 0});
      }
    }
    rows[at(worker)].q_arena.resize(at(plan.exchange.q_arena_rows[at(worker)]));
    rows[at(worker)].kv_arena.resize(at(plan.exchange.kv_arena_rows[at(worker)]));
  }
  return rows;
}

void carry(const RowMove& move, std::vector<Label> Rows::*arena, std::int32_t shard_heads,
           std::vector<Rows>& rows) {
  const auto source = move.round == 0 ? &Rows::own : &Rows::kv_arena;
  for (std::int64_t i = 0; i < move.rows; ++i) {
    Label& arrived = (rows[at(move.to)].*arena)[at(move.to_row + i)];
    EXPECT_EQ(arrived.token, -1) << "two moves to row " << move.to_row + i;
    arrived = {(rows[at(move.from)].*source)[at(move.from_row + i)].token,
               move.shard * shard_heads};
  }
}

void carry(const std::vector<RowMove>& moves, std::vector<Label> Rows::*arena,
           std::int32_t shard_heads, std::vector<Rows>& rows) {
  for (const std::int32_t round : {0, 1}) {
    for (const RowMove& move : moves) {
      if (move.round == round) carry(move, arena, shard_heads, rows);
    }
  }
}

std::vector<Rows> rows_after_dispatch(const PoolPlan& plan) {
  std::vector<Rows> rows = own_rows(plan);
  carry(plan.exchange.q_moves, &Rows::q_arena, plan.heads().shard_heads, rows);
  carry(plan.exchange.kv_moves, &Rows::kv_arena, plan.heads().kv_shard_heads, rows);
  carry(plan.exchange.kv_copies, &Rows::kv_arena, plan.heads().kv_shard_heads, rows);
  return rows;
}

bool visible(Mask mask, std::int64_t query, std::int64_t key, const Entry& entry) {
  if (mask == Mask::kFull) return true;
  return key <= query + (mask == Mask::kBottomRightCausal ? entry.keys - entry.queries : 0);
}

class Coverage {
 public:
  Coverage(const PoolPlan& plan, const WholeLimits& limits)
      : plan_(plan),
        limits_(limits),
        tokens_(sequence_begins(plan).back()),
        count_(at(tokens_ * tokens_ * plan.options.shape.q_heads), 0),
        q_sources_(at(tokens_ * plan.options.shape.q_heads), 0),
        k_sources_(at(tokens_ * plan.options.shape.kv_heads), 0),
        rows_(rows_after_dispatch(plan)) {}

  void add_worker(std::int32_t worker, Pass pass) {
    const WorkerProgram program = make_worker_program(plan_, worker, limits_);
    const HeadSplit heads = plan_.heads();
    add({program, program.local, local_call(program.local, pass, heads, 1.0), 0});
    if (pass == Pass::kBackward) add({program, program.local, whole_call(program, 1.0), 0});
    for (const EntryGroup& group : program.chunked) {
      for (std::int32_t chunk = 0; chunk < plan_.options.chunks; ++chunk) {
        add({program, group, chunk_call(group, pass, heads, chunk, 1.0), chunk});
      }
    }
  }

  /// Entries whose gradients are written.
  std::int32_t written() const { return written_; }

  // Every query of a sample sees that sample's keys up to itself, in each head once.
  void expect_causal_attention() const {
    std::vector<std::uint8_t> expected(count_.size(), 0);
    const std::vector<std::int64_t> begins = sequence_begins(plan_);
    for (std::size_t replica = 0; replica < plan_.sequences.size(); ++replica) {
      std::int64_t begin = begins[replica];
      for (const std::int64_t tokens : plan_.sequences[replica].sample_tokens) {
        for (std::int64_t query = begin; query < begin + tokens; ++query) {
          for (std::int64_t key = begin; key <= query; ++key) mark(query, key, expected);
        }
        begin += tokens;
      }
    }
    EXPECT_TRUE(expected == count_);
  }

 private:
  struct Calls {
    const WorkerProgram& program;
    const EntryGroup& group;
    AttentionCall call;
    std::int32_t chunk = 0;
  };

  void mark(std::int64_t query, std::int64_t key, std::vector<std::uint8_t>& pairs) const {
    const std::int32_t heads = plan_.options.shape.q_heads;
    for (std::int32_t head = 0; head < heads; ++head) {
      ++pairs[at((query * tokens_ + key) * heads + head)];
    }
  }

  void add(const Calls& calls) {
    const bool written = calls.call.gradients == Gradients::kWritten;
    for (const Entry& entry : calls.call.entries) {
      source_ = written ? ++written_ : kSums;
      for (std::int64_t query = 0; query < entry.queries; ++query) {
        for (std::int64_t key = 0; key < entry.keys; ++key) {
          if (visible(entry.mask, query, key, entry)) add_pair(calls, entry, query, key);
        }
      }
    }
  }

  void add_pair(const Calls& calls, const Entry& entry, std::int64_t query, std::int64_t key) {
    const Label q = query_label(calls, entry, entry.q_row + query);
    const Label k = key_label(calls, entry, entry.kv_row + key);
    const AttentionShape& shape = plan_.options.shape;
    for (std::int32_t i = 0; i < calls.call.q_heads; ++i) {
      const std::int32_t kv_head = k.head + i * calls.call.kv_heads / calls.call.q_heads;
      ASSERT_EQ(kv_head, (q.head + i) / (shape.q_heads / shape.kv_heads));
      ++count_[at((q.token * tokens_ + k.token) * shape.q_heads + q.head + i)];
      expect_source(q_sources_[at(q.token * shape.q_heads + q.head + i)]);
      expect_source(k_sources_[at(k.token * shape.kv_heads + kv_head)]);
    }
  }

  // All that goes into one gradient comes from the same source.
  void expect_source(std::int32_t& source) const {
    if (source == 0) source = source_;
    EXPECT_EQ(source, source_);
  }

  // The token and the first head, in the model, of the call's query heads. An arena holds one
  // chunk.
  Label query_label(const Calls& calls, const Entry& entry, std::int64_t row) const {
    const Rows& rows = rows_[at(calls.program.worker)];
    const std::int32_t head = entry.q_head + calls.call.q_head_shift;
    if (!calls.group.q_in_arena) {
      return {rows.own.at(at(row)).token, calls.program.first_q_head + head};
    }
    const Label label = rows.q_arena.at(at(row));
    return {label.token, label.head + head + calls.chunk * plan_.heads().chunk_heads};
  }

  Label key_label(const Calls& calls, const Entry& entry, std::int64_t row) const {
    const Rows& rows = rows_[at(calls.program.worker)];
    const HeadSplit heads = plan_.heads();
    const std::int32_t head = entry.kv_head + calls.call.kv_head_shift;
    if (!calls.group.kv_in_arena) {
      return {rows.own.at(at(row)).token, calls.program.first_kv_head + head};
    }
    const Label label = rows.kv_arena.at(at(row));
    return {label.token, label.head + head + heads.kv_chunk_of(calls.chunk) * heads.kv_chunk_heads};
  }

  static constexpr std::int32_t kSums = -1;

  const PoolPlan& plan_;
  WholeLimits limits_;
  std::int64_t tokens_;
  std::vector<std::uint8_t> count_;  // by (query, key, head)
  // By (token, head): the sums, or the number of the entry that writes the gradient; 0: none yet.
  std::vector<std::int32_t> q_sources_, k_sources_;
  std::int32_t source_ = 0;  // of the entry at hand
  std::int32_t written_ = 0;
  std::vector<Rows> rows_;
};

// Returns how many samples were whole.
std::int32_t expect_covered(Pass pass) {
  std::int32_t written = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan =
        seed % 2 == 0 ? testing::random_plan(seed, 40) : testing::mostly_at_home(seed, 40);
    Rng rng(seed, 2);
    Coverage coverage(plan, {testing::between(rng, 5, 40), testing::between(rng, 1, 10)});
    for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
      coverage.add_worker(worker, pass);
    }
    coverage.expect_causal_attention();
    written += coverage.written();
    if (::testing::Test::HasFailure()) break;
  }
  return written;
}

TEST(Coverage, ForwardEntriesCoverEveryPairExactlyOnce) { expect_covered(Pass::kForward); }
TEST(Coverage, BackwardEntriesCoverEveryPairExactlyOnce) {
  EXPECT_GT(expect_covered(Pass::kBackward), 100) << "samples that are whole";
}

}  // namespace
}  // namespace libra
