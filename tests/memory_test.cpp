// The memory that passes touch is the memory that the plan predicts: nothing outside, and all of it
// up to the last byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "libra/base/index.h"
#include "libra/plan/memory_plan.h"
#include "libra/runtime/random_pools.h"
#include "libra/runtime/worker_threads.h"
#include "libra/transport/inproc/transport.h"
#include "tests/guarded_memory.h"
#include "tests/layer_driver.h"
#include "tests/matrix_fraction.h"
#include "tests/pool_check.h"
#include "tests/seat.h"
#include "tests/transport_decorator.h"

namespace libra::testing {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

// The arena is exactly as large as was asked for, between guards. An in-process transport does not
// care where it lies.
class GuardedArena final : public TransportDecorator {
 public:
  using TransportDecorator::TransportDecorator;
  void reserve_arena(std::int64_t bytes) override {
    memory_ = std::make_unique<GuardedMemory>(bytes);
  }
  std::byte* arena() override { return memory_->data(); }
  std::int64_t arena_bytes() const override { return memory_->bytes(); }
  GuardedMemory& memory() { return *memory_; }

 private:
  std::unique_ptr<GuardedMemory> memory_;
};

// The last byte of every slot of the region.
void expect_filled(const char* name, const Region& region, GuardedMemory& memory) {
  if (region.rows == 0) return;
  for (std::int32_t slot = 0; slot < region.slots; ++slot) {
    EXPECT_TRUE(memory.written(region.row(slot, region.rows) - 1)) << name << ", slot " << slot;
  }
}

// Regions begin at multiples of 256 bytes: this is how much of the memory they need.
std::int64_t in_whole_units(std::int64_t end) { return (end + 255) / 256 * 256; }

class MeasuredWorker {
 public:
  MeasuredWorker(const PoolPlan& plan, Transport& transport)
      : arena_(dynamic_cast<GuardedArena&>(transport)),
        layer_(plan, transport.worker(), 1),
        seat_(transport),
        pipeliner_(seat_.pipeliner(plan)) {}

  void run() {
    layer_.forward(*pipeliner_, seat_.stream);
    seat_.stream.synchronize();
    check_forward();
    // Between passes nothing in the arena counts.
    forward_end_ = arena_.memory().written_end();
    arena_.memory().reset();
    layer_.backward(*pipeliner_, seat_.stream);
    seat_.stream.synchronize();
    check_backward();
    check_peak();
    EXPECT_EQ(layer_.wrong_in_forward() + layer_.wrong_in_backward(), "");
  }

 private:
  void check_forward() {
    const ArenaLayout& arena = pipeliner_->memory().arena;
    const SavedLayout& saved = pipeliner_->memory().saved;
    expect_filled("q", arena.q, arena_.memory());
    expect_filled("k", arena.k, arena_.memory());
    expect_filled("v", arena.v, arena_.memory());
    expect_filled("o", arena.o, arena_.memory());
    expect_filled("lse", arena.lse, arena_.memory());
    expect_filled("saved q", saved.q, layer_.saved());
    expect_filled("saved k", saved.k, layer_.saved());
    expect_filled("saved v", saved.v, layer_.saved());
    expect_filled("saved o", saved.o, layer_.saved());
    expect_filled("saved lse", saved.lse, layer_.saved());
  }

  void check_backward() {
    const ArenaLayout& arena = pipeliner_->memory().arena;
    const ScratchLayout& scratch = pipeliner_->memory().scratch;
    expect_filled("dO", arena.d_o, arena_.memory());
    expect_filled("dQ", arena.dq, arena_.memory());
    expect_filled("dK", arena.dk, arena_.memory());
    expect_filled("dV", arena.dv, arena_.memory());
    expect_filled("dK at home", arena.dk_home, arena_.memory());
    expect_filled("dV at home", arena.dv_home, arena_.memory());
    expect_filled("dQ of the chunk", scratch.dq_arena, layer_.scratch());
    expect_filled("own dQ", scratch.dq, layer_.scratch());
    expect_filled("own dK", scratch.dk, layer_.scratch());
    expect_filled("own dV", scratch.dv, layer_.scratch());
  }

  void check_peak() {
    const std::int64_t used = std::max(forward_end_, arena_.memory().written_end());
    EXPECT_EQ(in_whole_units(used), arena_.memory().bytes());
    EXPECT_EQ(in_whole_units(layer_.saved().written_end()), layer_.saved().bytes());
    EXPECT_EQ(in_whole_units(layer_.scratch().written_end()), layer_.scratch().bytes());
    EXPECT_TRUE(arena_.memory().guards_untouched());
    EXPECT_TRUE(layer_.saved().guards_untouched());
    EXPECT_TRUE(layer_.scratch().guards_untouched());
  }

  GuardedArena& arena_;
  LayerDriver layer_;
  Seat seat_;
  std::unique_ptr<Pipeliner> pipeliner_;
  std::int64_t forward_end_ = 0;
};

TEST(Memory, PeakIsWhatThePlanPredictsAndNothingOutsideIsTouched) {
  for (std::uint64_t seed = 0; seed < 100; seed += static_cast<std::uint64_t>(matrix_fraction())) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = random_plan(seed, 60);
    const auto endpoints = decorated<GuardedArena>(make_inproc_group(plan.workers(), {}));
    const auto errors = on_every_worker(
        endpoints, [&](Transport& transport) { MeasuredWorker(plan, transport).run(); });
    EXPECT_THAT(errors, Each(IsEmpty()));
    if (HasFailure()) return;
  }
}

TEST(Memory, WithoutExchangeThereIsNoneForIt) {
  PlanOptions options;
  options.shape = {4, 2, 4, 4};
  options.storage = DType::kFp64;
  options.placer = PlacerKind::kNone;
  options.chunks = 1;
  const PoolPlan plan = make_plan(options, {{16, {16}}, {16, {3, 4}}});
  for (const WorkerMemory& memory : plan_memory(plan)) {
    EXPECT_EQ(memory.arena.bytes, 0);
    EXPECT_EQ(memory.saved.bytes, 0);
  }
  expect_exact(plan, 1);
}

TEST(GuardedMemory, NoticesAByteOnEitherSide) {
  // Under AddressSanitizer the access itself would end the program.
#if !defined(__SANITIZE_ADDRESS__)
  for (const std::int64_t offset : {std::int64_t{-1}, std::int64_t{100}}) {
    GuardedMemory memory(100);
    EXPECT_TRUE(memory.guards_untouched());
    memory.data()[offset] = std::byte{0};
    EXPECT_FALSE(memory.guards_untouched());
  }
#endif
  GuardedMemory memory(100);
  EXPECT_EQ(memory.written_end(), 0);
  memory.data()[60] = std::byte{0};
  EXPECT_EQ(memory.written_end(), 61);
  EXPECT_TRUE(memory.guards_untouched());
}

}  // namespace
}  // namespace libra::testing
