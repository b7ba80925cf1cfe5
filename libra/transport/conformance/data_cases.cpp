// What moves, and to where.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "libra/base/rng.h"
#include "libra/transport/conformance/cases.h"
#include "libra/transport/conformance/pattern.h"
#include "libra/transport/conformance/ring.h"

namespace libra::conformance {
namespace {

/// A transfer that every worker knows of, from the common seed.
struct Planned {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int32_t tag = 0;
  BlockShape source;
  BlockShape target;
  std::uint64_t key = 0;
};

std::int64_t below(Rng& rng, std::int64_t bound) {
  return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(bound)));
}

std::vector<Planned> random_plan(Rng& rng, std::int32_t workers, std::int32_t tags) {
  std::vector<Planned> plan(static_cast<std::size_t>(10 * workers));
  for (Planned& planned : plan) {
    planned.from = static_cast<std::int32_t>(below(rng, workers));
    planned.to = static_cast<std::int32_t>(below(rng, workers));
    planned.tag = static_cast<std::int32_t>(below(rng, tags));
    planned.source = {below(rng, 20), below(rng, 200), below(rng, 3) * below(rng, 50)};
    planned.target = planned.source;
    planned.target.gap_bytes = below(rng, 3) * below(rng, 50);
    planned.key = rng.next();
  }
  return plan;
}

/// This worker's part of a plan: its memory, and one exchange per tag.
class Part {
 public:
  Part(const std::vector<Planned>& plan, std::int32_t worker, std::int32_t tags,
       std::int32_t step) {
    for (std::int32_t tag = 0; tag < tags; ++tag)
      exchanges_.push_back({.tag = tag_of(step, tag), .sends = {}, .receives = {}});
    for (const Planned& planned : plan) {
      Exchange& exchange = exchanges_[static_cast<std::size_t>(planned.tag)];
      if (planned.from == worker) {
        blocks_.emplace_back(planned.source);
        blocks_.back().fill(planned.key);
        exchange.sends.push_back({.peer = planned.to, .local = blocks_.back().view()});
      }
      if (planned.to == worker) {
        blocks_.emplace_back(planned.target);
        exchange.receives.push_back({.peer = planned.from, .local = blocks_.back().view()});
        received_.push_back({&blocks_.back(), planned.key});
      }
    }
  }

  std::vector<Exchange>& exchanges() { return exchanges_; }

  void check() const {
    for (const auto& [block, key] : received_) EXPECT_TRUE(block->holds(key));
  }

 private:
  struct Received {
    const Block* block;
    std::uint64_t key;
  };
  std::deque<Block> blocks_;  // a deque: views stay valid
  std::vector<Exchange> exchanges_;
  std::vector<Received> received_;
};

void random_exchanges(Worker& worker) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const std::vector<Planned> plan = random_plan(rng, worker.count(), 4);
    Part part(plan, worker.id(), 4, static_cast<std::int32_t>(seed));
    post_and_wait(worker, part.exchanges());
    part.check();
  }
}

void tags_in_another_order_at_every_worker(Worker& worker) {
  constexpr std::int32_t kTags = 40;
  Rng common(77);
  const std::vector<Planned> plan = random_plan(common, worker.count(), kTags);
  Part part(plan, worker.id(), kTags, 3);
  Rng own(78, static_cast<std::uint64_t>(worker.id()));
  own.shuffle(part.exchanges());
  post_and_wait(worker, part.exchanges());
  part.check();
}

void sends_and_receives_posted_apart(Worker& worker) {
  Rng common(5);
  const std::vector<Planned> plan = random_plan(common, worker.count(), 3);
  Part part(plan, worker.id(), 3, 9);
  std::vector<Exchange> apart;
  for (const Exchange& both : part.exchanges()) {
    Exchange sends{.tag = both.tag, .sends = both.sends, .receives = {}};
    Exchange receives{.tag = both.tag, .sends = {}, .receives = both.receives};
    const bool sends_first = worker.id() % 2 == 0;
    apart.push_back(sends_first ? sends : receives);
    apart.push_back(sends_first ? receives : sends);
  }
  post_and_wait(worker, apart);
  part.check();
}

/// Exchanges blocks with the next and the previous worker, and waits for them.
void ring(Worker& worker, const Tag& tag, std::vector<Block>& out, std::vector<Block>& in) {
  post_and_wait(worker, {ring_exchange(worker, tag, out, in)});
}

void one_tag_matches_in_list_order(Worker& worker) {
  constexpr std::uint64_t kTransfers = 50;
  for (std::uint64_t post = 0; post < 3; ++post) {
    std::vector<Block> out(kTransfers, Block({.rows = 2, .row_bytes = 24, .gap_bytes = 8}));
    std::vector<Block> in = out;
    for (std::uint64_t i = 0; i < kTransfers; ++i) out[i].fill(post * 1000 + i);
    ring(worker, tag_of(1), out, in);
    for (std::uint64_t i = 0; i < kTransfers; ++i) EXPECT_TRUE(in[i].holds(post * 1000 + i));
  }
}

void ends_cut_their_bytes_differently(Worker& worker) {
  std::vector<Block> out(1, Block({.rows = 12, .row_bytes = 35, .gap_bytes = 3}));
  std::vector<Block> in(1, Block({.rows = 5, .row_bytes = 84, .gap_bytes = 11}));
  std::vector<Block> flat(1, Block({.rows = 1, .row_bytes = 420}));
  out[0].fill(4);
  ring(worker, tag_of(1), out, in);
  ring(worker, tag_of(2), in, flat);
  EXPECT_TRUE(flat[0].holds(4));
  ring(worker, tag_of(3), flat, out);
  EXPECT_TRUE(out[0].holds(4));
}

void empty_posts(Worker& worker) {
  for (std::int32_t step = 0; step < 3; ++step)
    post_and_wait(worker, {{.tag = tag_of(step), .sends = {}, .receives = {}}});
}

void a_worker_with_nothing_to_do(Worker& worker) {
  const std::int32_t peer = 1 - worker.id();
  Block out({.rows = 3, .row_bytes = 40, .gap_bytes = 4});
  Block in({.rows = 3, .row_bytes = 40});
  for (std::int32_t step = 0; step < 10; ++step) {
    const auto key = static_cast<std::uint64_t>(step);
    Exchange exchange{.tag = tag_of(step), .sends = {}, .receives = {}};
    if (worker.id() < 2) {
      out.fill(key);
      exchange.sends.push_back({.peer = peer, .local = out.view()});
      exchange.receives.push_back({.peer = peer, .local = in.view()});
    }
    post_and_wait(worker, {exchange});
    EXPECT_EQ(in.holds(key), !exchange.receives.empty());
  }
}

void zero_bytes(Worker& worker) {
  const std::int32_t next = (worker.id() + 1) % worker.count();
  const std::int32_t previous = (worker.id() + worker.count() - 1) % worker.count();
  const StridedView no_rows{nullptr, 0, 128, 256};
  const StridedView no_columns{nullptr, 5, 0, 16};
  post_and_wait(
      worker,
      {{.tag = tag_of(1),
        .sends = {{.peer = next, .local = no_rows}, {.peer = next, .local = no_columns}},
        .receives = {{.peer = previous, .local = no_rows}, {.peer = previous, .local = no_rows}}}});
  const std::vector<ExchangeRecord> records = worker.transport->take_records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].bytes_sent, 0);
}

void sends_to_self(Worker& worker) {
  Block out({.rows = 4, .row_bytes = 100, .gap_bytes = 28});
  Block in({.rows = 4, .row_bytes = 100});
  out.fill(6);
  post_and_wait(worker, {{.tag = tag_of(1),
                          .sends = {{.peer = worker.id(), .local = out.view()}},
                          .receives = {{.peer = worker.id(), .local = in.view()}}}});
  EXPECT_TRUE(in.holds(6));
}

void a_large_transfer(Worker& worker) {
  const BlockShape shape{.rows = 1024, .row_bytes = 64 * 1024, .gap_bytes = 0};
  std::vector<Block> out(1,
                         Block(worker.id() == 0 ? shape : BlockShape{.rows = 0, .row_bytes = 1}));
  std::vector<Block> in(1, Block(worker.id() == 1 ? shape : BlockShape{.rows = 0, .row_bytes = 1}));
  out[0].fill(8);
  ring(worker, tag_of(1), out, in);
  EXPECT_TRUE(worker.id() == 1 ? in[0].holds(8) : in[0].untouched());
}

void the_arena_is_aligned_and_grows(Worker& worker) {
  Transport& transport = *worker.transport;
  EXPECT_EQ(transport.arena_bytes(), 0);
  transport.reserve_arena(1000);
  ASSERT_GE(transport.arena_bytes(), 1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(transport.arena()) % 256, 0U);
  std::byte* const before = transport.arena();
  transport.reserve_arena(500);
  EXPECT_EQ(transport.arena(), before);
  transport.reserve_arena(100'000);
  ASSERT_GE(transport.arena_bytes(), 100'000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(transport.arena()) % 256, 0U);
  transport.arena()[99'999] = std::byte{1};
}

void records_are_complete(Worker& worker) {
  constexpr std::int32_t kTags = 6;
  Rng rng(123);
  const std::vector<Planned> plan = random_plan(rng, worker.count(), kTags);
  Part part(plan, worker.id(), kTags, 2);
  post_and_wait(worker, part.exchanges());
  const std::vector<ExchangeRecord> records = worker.transport->take_records();
  ASSERT_EQ(records.size(), part.exchanges().size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    std::int64_t sent = 0;
    std::int64_t received = 0;
    for (const Transfer& send : part.exchanges()[i].sends) sent += send.local.bytes();
    for (const Transfer& receive : part.exchanges()[i].receives) received += receive.local.bytes();
    EXPECT_EQ(records[i].tag, part.exchanges()[i].tag);
    EXPECT_EQ(records[i].bytes_sent, sent);
    EXPECT_EQ(records[i].bytes_received, received);
    EXPECT_LE(records[i].begin_ns, records[i].end_ns);
  }
  EXPECT_TRUE(worker.transport->take_records().empty());
}

}  // namespace

std::vector<ConformanceCase> data_cases() {
  return {
      {"RandomExchangesArriveExactly", random_exchanges},
      {"TagsInFlightMayCompleteInAnyOrder", tags_in_another_order_at_every_worker},
      {"SendsAndReceivesMayBePostedApart", sends_and_receives_posted_apart},
      {"OneTagMatchesInListOrder", one_tag_matches_in_list_order},
      {"EndsMayCutTheirBytesDifferently", ends_cut_their_bytes_differently},
      {"EmptyPostsComplete", empty_posts},
      {"AWorkerMayHaveNothingToDo", a_worker_with_nothing_to_do, 3},
      {"ZeroBytesAreATransfer", zero_bytes},
      {"AWorkerMaySendToItself", sends_to_self},
      {"LargeTransferArrives", a_large_transfer, 2},
      {"ArenaIsAlignedAndGrows", the_arena_is_aligned_and_grows},
      {"RecordsAreComplete", records_are_complete},
  };
}

}  // namespace libra::conformance
