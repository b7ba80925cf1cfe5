#include "libra/attention/cudnn/pass_key.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "libra/base/rng.h"

namespace libra::cudnn {
namespace {

struct alignas(256) Memory {
  std::array<std::byte, 4096> bytes{};
  std::byte* data() { return bytes.data(); }
};

// Strides of a tensor of 8 heads of 64; no memory behind it is touched.
BackwardTensors tensors_at(std::byte* memory) {
  const TensorView wide{memory, DType::kBf16, 1000, 8, 64, 512, 64};
  const TensorView sums{memory, DType::kFp32, 1000, 8, 64, 512, 64};
  const TensorView lse{memory, DType::kFp32, 1000, 8, 1, 8, 1};
  return {wide, wide, wide, wide, lse, wide, sums, sums, sums};
}

AttentionCall random_call(Rng& rng) {
  AttentionCall call;
  call.q_heads = 4;
  call.kv_heads = 2;
  for (std::int64_t row = 0; row < 1000;) {
    const auto rows = std::min(static_cast<std::int64_t>(1 + rng.below(100)), 1000 - row);
    call.entries.push_back({row, rows, row, rows, 0, 0, Mask::kTopLeftCausal});
    row += rows;
  }
  return call;
}

PassKey key_at(const AttentionCall& call, const BackwardTensors& tensors) {
  return key_of(Pass::kBackward, call, tensors_of(call, tensors));
}

TEST(PassKey, ChunksAndLayersShareOne) {
  Rng rng(1);
  Memory one, another;
  AttentionCall call = random_call(rng);
  const PassKey key = key_at(call, tensors_at(one.data()));
  call.q_head_shift = 4;
  call.kv_head_shift = 2;
  call.softmax_scale = 0.5;
  const PassKey chunk = key_at(call, tensors_at(another.data()));
  EXPECT_EQ(key, chunk);
  EXPECT_EQ(PassKeyHash()(key), PassKeyHash()(chunk));
}

TEST(PassKey, WhateverChangesTheWorkChangesIt) {
  Rng rng(2);
  Memory memory;
  const AttentionCall call = random_call(rng);
  const BackwardTensors tensors = tensors_at(memory.data());
  const PassKey key = key_at(call, tensors);
  const auto differs = [&](const std::function<void(AttentionCall&, BackwardTensors&)>& change) {
    AttentionCall other_call = call;
    BackwardTensors other = tensors;
    change(other_call, other);
    return !(key_at(other_call, other) == key);
  };
  EXPECT_TRUE(differs([](auto& c, auto&) { c.entries.pop_back(); }));
  EXPECT_TRUE(differs([&](auto& c, auto&) { ++c.entries[rng.below(c.entries.size())].keys; }));
  EXPECT_TRUE(differs([](auto& c, auto&) { c.entries.back().mask = Mask::kFull; }));
  EXPECT_TRUE(differs([](auto& c, auto&) { c.kv_heads = 1; }));
  EXPECT_TRUE(differs([](auto& c, auto&) { c.gradients = Gradients::kWritten; }));
  EXPECT_TRUE(differs([](auto&, auto& t) { t.dv.row_stride = 1024; }));
  EXPECT_TRUE(differs([](auto&, auto& t) { t.o.head_stride = 128; }));
  EXPECT_TRUE(differs([](auto&, auto& t) { t.q.dtype = DType::kFp16; }));
  EXPECT_FALSE(key_of(Pass::kForward, call, tensors_of(call, tensors)) == key);
}

TEST(PassKey, ForwardHasNoGradients) {
  Rng rng(5);
  Memory memory;
  AttentionCall call = random_call(rng);
  const BackwardTensors t = tensors_at(memory.data());
  const PassTensors tensors = tensors_of(call, ForwardTensors{t.q, t.k, t.v, t.o, t.lse});
  const PassKey key = key_of(Pass::kForward, call, tensors);
  call.gradients = Gradients::kWritten;
  EXPECT_EQ(key_of(Pass::kForward, call, tensors), key);
}

TEST(PassKey, EntriesMayCountHeadsFromBelowZero) {
  Rng rng(4);
  Memory memory;
  AttentionCall call = random_call(rng);
  const PassKey key = key_at(call, tensors_at(memory.data()));
  for (Entry& entry : call.entries) {
    entry.q_head = -4;
    entry.kv_head = -2;
  }
  call.q_head_shift = 8;
  call.kv_head_shift = 4;
  EXPECT_EQ(key_at(call, tensors_at(memory.data())), key);
  const PassTensors tensors = tensors_of(call, tensors_at(memory.data()));
  EXPECT_EQ(tensors[Port::kQ].data, memory.data() + 4 * 64 * 2);
  EXPECT_EQ(tensors[Port::kV].data, memory.data() + 2 * 64 * 2);
}

TEST(PassKey, HeadsThatBeginElsewhereAreTold) {
  Rng rng(3);
  Memory memory;
  AttentionCall call = random_call(rng);
  const PassKey key = key_at(call, tensors_at(memory.data()));
  call.q_head_shift = 3;
  const PassKey odd = key_at(call, tensors_at(memory.data()));
  EXPECT_EQ(key.layouts[Port::kLse].lead, 0);
  EXPECT_EQ(odd.layouts[Port::kLse].lead, 3);
  EXPECT_EQ(odd.layouts[Port::kQ].lead, 64) << "three heads of 128 bytes";
  EXPECT_EQ(odd.layouts[Port::kDq].lead, 0) << "of 256";
  EXPECT_FALSE(odd == key);
}

TEST(PassKey, TensorsBeginAtTheCallsHeads) {
  Memory memory;
  AttentionCall call;
  call.q_head_shift = 3;
  call.kv_head_shift = 1;
  const PassTensors tensors = tensors_of(call, tensors_at(memory.data()));
  EXPECT_EQ(tensors[Port::kQ].data, memory.data() + 3 * 64 * 2);
  EXPECT_EQ(tensors[Port::kDq].data, memory.data() + 3 * 64 * 4);
  EXPECT_EQ(tensors[Port::kLse].data, memory.data() + 3 * 4);
  EXPECT_EQ(tensors[Port::kK].data, memory.data() + 64 * 2);
  EXPECT_EQ(tensors[Port::kDv].data, memory.data() + 64 * 4);
  EXPECT_EQ(tensors[Port::kQ].heads, 5);
}

}  // namespace
}  // namespace libra::cudnn
