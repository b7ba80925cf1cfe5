#include "libra/runtime/chunk_calls.h"

#include <gtest/gtest.h>

namespace libra {
namespace {

// 16 query heads in one shard, 4 KV heads, 8 chunks: two chunks share a KV head.
const HeadSplit kHeads({16, 4, 8, 8}, 1, 8);

EntryGroup group_of(bool q_in_arena, bool kv_in_arena) {
  return {q_in_arena, kv_in_arena, {{0, 4, 0, 4, 0, 0}}, {{0, 4, 0, 4, 0, 0}, {4, 1, 0, 4, 0, 0}}};
}

TEST(ChunkCalls, OwnTensorsAreShiftedToTheChunksHeads) {
  const AttentionCall call = chunk_call(group_of(false, false), Pass::kForward, kHeads, 5, 0.5);
  EXPECT_EQ(call.q_heads, 2);
  EXPECT_EQ(call.kv_heads, 1);
  EXPECT_EQ(call.q_head_shift, 10);
  EXPECT_EQ(call.kv_head_shift, 2);
  EXPECT_EQ(call.softmax_scale, 0.5);
}

TEST(ChunkCalls, ArenaTensorsHoldJustTheChunk) {
  EXPECT_EQ(chunk_call(group_of(true, false), Pass::kForward, kHeads, 5, 1).q_head_shift, 0);
  EXPECT_EQ(chunk_call(group_of(true, false), Pass::kForward, kHeads, 5, 1).kv_head_shift, 2);
  EXPECT_EQ(chunk_call(group_of(false, true), Pass::kForward, kHeads, 5, 1).q_head_shift, 10);
  EXPECT_EQ(chunk_call(group_of(false, true), Pass::kForward, kHeads, 5, 1).kv_head_shift, 0);
}

TEST(ChunkCalls, EachPassHasItsEntries) {
  const EntryGroup group = group_of(true, true);
  EXPECT_EQ(chunk_call(group, Pass::kForward, kHeads, 0, 1).entries, group.forward);
  EXPECT_EQ(chunk_call(group, Pass::kBackward, kHeads, 0, 1).entries, group.backward);
  EXPECT_EQ(local_call(group, Pass::kForward, kHeads, 1).entries, group.forward);
  EXPECT_EQ(local_call(group, Pass::kBackward, kHeads, 1).entries, group.backward);
}

TEST(ChunkCalls, LocalWorkTakesWholeShardsAtOnce) {
  const AttentionCall call = local_call(group_of(false, false), Pass::kBackward, kHeads, 0.25);
  EXPECT_EQ(call.q_heads, 16);
  EXPECT_EQ(call.kv_heads, 4);
  EXPECT_EQ(call.q_head_shift, 0);
  EXPECT_EQ(call.kv_head_shift, 0);
  EXPECT_EQ(call.softmax_scale, 0.25);
}

TEST(ChunkCalls, WholeSamplesAreWrittenInAllOwnHeads) {
  WorkerProgram program;
  program.q_heads = 32;
  program.kv_heads = 8;
  program.whole = {{3, 4, 3, 4, 0, 0, Mask::kTopLeftCausal}};
  const AttentionCall call = whole_call(program, 0.25);
  EXPECT_EQ(call.entries, program.whole);
  EXPECT_EQ(call.q_heads, 32);
  EXPECT_EQ(call.kv_heads, 8);
  EXPECT_EQ(call.softmax_scale, 0.25);
  EXPECT_EQ(call.gradients, Gradients::kWritten);
}

}  // namespace
}  // namespace libra
