#include "libra/attention/conformance/problem.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "libra/base/range.h"

namespace libra::conformance {
namespace {

// Low precision is judged by the largest of many rounding errors (judge.h), so lengths are either
// nothing or enough for that; fp64 takes short ones, too.
std::int64_t random_length(DType dtype, Rng& rng) {
  const bool exact = dtype == DType::kFp64;
  if (rng.below(5) == 0) return exact ? static_cast<std::int64_t>(rng.below(3)) : 0;
  return exact ? static_cast<std::int64_t>(rng.below(140))
               : 40 + static_cast<std::int64_t>(rng.below(100));
}

struct HeadCounts {
  std::int32_t q;
  std::int32_t kv;
};

HeadCounts random_heads(Rng& rng) {
  constexpr std::array<HeadCounts, 6> kChoices = {{{1, 1}, {8, 8}, {8, 2}, {8, 1}, {6, 2}, {5, 1}}};
  return kChoices[rng.below(kChoices.size())];
}

// Rows of the queries are disjoint, with gaps; keys lie anywhere in `kv_rows`.
Entry random_entry(DType dtype, std::int64_t first_row, std::int64_t kv_rows, Rng& rng) {
  Entry entry;
  entry.q_row = first_row + static_cast<std::int64_t>(rng.below(4));
  entry.queries = random_length(dtype, rng);
  entry.keys = std::min(random_length(dtype, rng), kv_rows);
  entry.kv_row =
      static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(kv_rows - entry.keys + 1)));
  constexpr std::array<Mask, 3> kMasks = {Mask::kTopLeftCausal, Mask::kBottomRightCausal,
                                          Mask::kFull};
  entry.mask = kMasks[rng.below(kMasks.size())];
  return entry;
}

// A call on half the heads of tensors, which `shape` gets twice as many of, with shifts.
AttentionCall call_on_half(HeadCounts heads, Shape& shape, Rng& rng) {
  shape.q_heads = 2 * heads.q;
  shape.kv_heads = 2 * heads.kv;
  AttentionCall call;
  call.q_heads = heads.q;
  call.kv_heads = heads.kv;
  call.q_head_shift = static_cast<std::int32_t>(rng.below(2)) * heads.q;
  call.kv_head_shift = static_cast<std::int32_t>(rng.below(2)) * heads.kv;
  return call;
}

void add_on_random_heads(Entry entry, AttentionCall& call, Rng& rng) {
  entry.q_head = static_cast<std::int32_t>(rng.below(2)) * call.q_heads - call.q_head_shift;
  entry.kv_head = static_cast<std::int32_t>(rng.below(2)) * call.kv_heads - call.kv_head_shift;
  call.entries.push_back(entry);
}

// Squares with some rows between them, to be written. On all heads if the tensors have no others.
Problem with_random_squares(AttentionCall call, Shape shape, Rng& rng) {
  call.gradients = Gradients::kWritten;
  const std::uint64_t count = 1 + rng.below(5);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int64_t row = shape.q_rows + static_cast<std::int64_t>(rng.below(2) * rng.below(9));
    const std::int64_t length = random_length(shape.dtype, rng);
    const Entry square{row, length, row, length, 0, 0, Mask::kTopLeftCausal};
    if (shape.q_heads == call.q_heads) {
      call.entries.push_back(square);
    } else {
      add_on_random_heads(square, call, rng);
    }
    shape.q_rows = shape.kv_rows = row + length;
  }
  shape.q_rows = ++shape.kv_rows;  // one that no entry names
  rng.shuffle(call.entries);
  return make_problem(call, shape, rng);
}

void fill_block(HostTensor& tensor, TokenRange rows, HeadRange heads, double value) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    std::fill(tensor.vector(row, heads.begin), tensor.vector(row, heads.end), value);
  }
}

}  // namespace

Problem make_problem(const AttentionCall& call, const Shape& shape, Rng& rng) {
  Problem problem;
  problem.call = call;
  if (call.softmax_scale == 1.0) problem.call.softmax_scale = 1.0 / std::sqrt(shape.dims.qk);
  problem.q = HostTensor(shape.dtype, shape.q_rows, shape.q_heads, shape.dims.qk);
  problem.k = HostTensor(shape.dtype, shape.kv_rows, shape.kv_heads, shape.dims.qk);
  problem.v = HostTensor(shape.dtype, shape.kv_rows, shape.kv_heads, shape.dims.v);
  problem.d_o = HostTensor(shape.dtype, shape.q_rows, shape.q_heads, shape.dims.v);
  randomize(problem.q, shape.q_amplitude, rng);
  randomize(problem.k, shape.k_amplitude, rng);
  randomize(problem.v, 1.0, rng);
  randomize(problem.d_o, 1.0, rng);
  return problem;
}

Problem single_entry(const Shape& shape, Mask mask, Rng& rng) {
  AttentionCall call;
  call.entries = {{0, shape.q_rows, 0, shape.kv_rows, 0, 0, mask}};
  call.q_heads = shape.q_heads;
  call.kv_heads = shape.kv_heads;
  return make_problem(call, shape, rng);
}

Problem random_problem(DType dtype, HeadDims dims, Rng& rng) {
  const HeadCounts heads = random_heads(rng);
  Shape shape{dtype, dims};
  shape.kv_rows = 40 + random_length(dtype, rng);
  AttentionCall call = call_on_half(heads, shape, rng);
  const std::uint64_t count = 1 + rng.below(6);
  for (std::uint64_t i = 0; i < count; ++i) {
    Entry entry = random_entry(dtype, shape.q_rows, shape.kv_rows, rng);
    shape.q_rows = entry.q_row + entry.queries + 1;
    add_on_random_heads(entry, call, rng);
  }
  return make_problem(call, shape, rng);
}

Problem random_squares(DType dtype, HeadDims dims, Rng& rng) {
  Shape shape{dtype, dims};
  const AttentionCall call = call_on_half(random_heads(rng), shape, rng);
  return with_random_squares(call, shape, rng);
}

Problem random_squares_of_all_heads(DType dtype, HeadDims dims, Rng& rng) {
  const HeadCounts heads = random_heads(rng);
  Shape shape{dtype, dims};
  AttentionCall call;
  call.q_heads = shape.q_heads = heads.q;
  call.kv_heads = shape.kv_heads = heads.kv;
  return with_random_squares(call, shape, rng);
}

Problem random_disjoint_problem(DType dtype, HeadDims dims, Rng& rng) {
  Shape shape{dtype, dims};
  AttentionCall call = call_on_half(random_heads(rng), shape, rng);
  call.gradients = Gradients::kWritten;
  const std::uint64_t count = 1 + rng.below(5);
  for (std::uint64_t i = 0; i < count; ++i) {
    Entry entry = random_entry(dtype, shape.q_rows, 140, rng);
    entry.kv_row = shape.kv_rows + static_cast<std::int64_t>(rng.below(4));
    shape.q_rows = entry.q_row + entry.queries + 1;
    shape.kv_rows = entry.kv_row + entry.keys + 1;
    add_on_random_heads(entry, call, rng);
  }
  return make_problem(call, shape, rng);
}

Results blank_results(const Problem& problem, double poison) {
  const HostTensor& q = problem.q;
  const DType sums = accumulation_dtype(q.dtype);
  const DType gradients = problem.call.gradients == Gradients::kWritten ? q.dtype : sums;
  const double start = problem.initial_gradient;
  Results results;
  results.o = HostTensor(q.dtype, q.rows, q.heads, problem.v.dim, poison);
  results.lse = HostTensor(sums, q.rows, q.heads, 1, poison);
  results.dq = HostTensor(gradients, q.rows, q.heads, q.dim, start);
  results.dk = HostTensor(gradients, problem.k.rows, problem.k.heads, problem.k.dim, start);
  results.dv = HostTensor(gradients, problem.v.rows, problem.v.heads, problem.v.dim, start);
  return results;
}

void set_named_gradients(const AttentionCall& call, double value, Results& results) {
  for (const Entry& entry : call.entries) {
    const std::int32_t q_head = entry.q_head + call.q_head_shift;
    const std::int32_t kv_head = entry.kv_head + call.kv_head_shift;
    const TokenRange keys{entry.kv_row, entry.kv_row + entry.keys};
    const HeadRange kv_heads{kv_head, kv_head + call.kv_heads};
    fill_block(results.dq, {entry.q_row, entry.q_row + entry.queries},
               {q_head, q_head + call.q_heads}, value);
    fill_block(results.dk, keys, kv_heads, value);
    fill_block(results.dv, keys, kv_heads, value);
  }
}

}  // namespace libra::conformance
