#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "libra/attention/conformance/cases.h"
#include "libra/attention/conformance/judge.h"
#include "libra/attention/conformance/session.h"
#include "libra/base/error.h"

namespace libra::conformance {
namespace {

// Small, with GQA, several masks and room around the entries: 8 query rows, 8 key rows and 2 + 2
// heads that no entry names.
Problem small_problem(const Subject& subject, DType dtype, std::uint64_t seed) {
  Rng rng(seed);
  AttentionCall call;
  call.q_heads = 4;
  call.kv_heads = 2;
  call.entries = {{2, 70, 3, 90, 1, 1, Mask::kBottomRightCausal},
                  {74, 30, 3, 20, 1, 1, Mask::kTopLeftCausal},
                  {105, 15, 50, 43, 0, 0, Mask::kFull}};
  return make_problem(call, {dtype, subject.head_dims().front(), 125, 100, 6, 4}, rng);
}

bool first_rows_are_zero(const HostTensor& tensor, std::int64_t rows) {
  return std::all_of(tensor.vector(0, 0), tensor.vector(rows, 0),
                     [](double value) { return value == 0.0; });
}

// Sets O and LSE of everything that the call names to `poison`.
void poison_named(const AttentionCall& call, double poison, Results& results) {
  for (const Entry& entry : call.entries) {
    for (std::int64_t row = entry.q_row; row < entry.q_row + entry.queries; ++row) {
      for (std::int32_t head = entry.q_head; head < entry.q_head + call.q_heads; ++head) {
        const std::int32_t shifted = head + call.q_head_shift;
        std::fill_n(results.o.vector(row, shifted), results.o.dim, poison);
        *results.lse.vector(row, shifted) = poison;
      }
    }
  }
}

// The causal block of the queries [a, e) of one sample, as a square and a rectangle.
std::vector<Entry> split_block(const Entry& block) {
  const std::int64_t a = block.keys - block.queries;
  return {{block.q_row, block.queries, block.kv_row + a, block.queries, 0, 0, Mask::kTopLeftCausal},
          {block.q_row, block.queries, block.kv_row, a, 0, 0, Mask::kFull}};
}

}  // namespace

void rows_without_keys_are_zero(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    Rng rng(6);
    AttentionCall call;
    call.entries = {{0, 40, 5, 0, 0, 0, Mask::kFull},
                    {40, 90, 0, 20, 0, 0, Mask::kBottomRightCausal},  // 70 see no key
                    {130, 0, 0, 20, 0, 0, Mask::kFull}};
    const Problem problem =
        make_problem(call, {dtype, subject.head_dims().front(), 130, 20, 1, 1}, rng);
    Results results = run(subject, problem, {}, std::nan(""));
    for (std::int64_t row = 0; row < 110; ++row) {
      EXPECT_EQ(*results.lse.vector(row, 0), -std::numeric_limits<double>::infinity()) << row;
    }
    EXPECT_TRUE(first_rows_are_zero(results.o, 110));
    EXPECT_TRUE(first_rows_are_zero(results.dq, 110));
  }
}

void rows_that_no_entry_names_are_untouched(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    const Problem problem = small_problem(subject, dtype, 7);
    Rng rng(7);
    const Layouts layouts = random_layouts(rng);
    const double poison = 0.5;
    Session session(subject, problem, layouts, poison);
    session.forward();
    session.backward();
    session.synchronize();
    // Named rows are put back; then every byte, gaps included, must be as it was.
    Results results = session.download();
    expect_good(subject, problem, results, poison);
    const Results blank = blank_results(problem, poison);
    poison_named(problem.call, poison, results);
    EXPECT_EQ(results.o.values, blank.o.values);
    EXPECT_EQ(results.lse.values, blank.lse.values);
    const DeviceTensor o(subject, session.download().o, layouts[3]);
    const DeviceTensor dk(subject, session.download().dk, layouts[7]);
    EXPECT_EQ(session.images()[0], o.image()) << "a gap of O was written";
    EXPECT_EQ(session.images()[3], dk.image()) << "a gap of dK was written";
  }
}

void gradients_are_added(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    Problem problem = small_problem(subject, dtype, 8);
    problem.initial_gradient = 0.75;
    expect_good(subject, problem, run(subject, problem));
  }
}

void backward_is_additive_over_key_ranges(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    for (const std::int64_t queries : {1, 17, 64, 100, 150}) {
      SCOPED_TRACE(fmt::format("{}, {} queries of 150", dtype_name(dtype), queries));
      Rng rng(9);
      const Shape shape{dtype, subject.head_dims().front(), queries, 150, 4, 2};
      const Problem problem = single_entry(shape, Mask::kBottomRightCausal, rng);
      Session session(subject, problem);
      AttentionCall split = problem.call;
      split.entries = split_block(problem.call.entries[0]);
      session.forward();
      AttentionCall part = split;
      for (const Entry& entry : split.entries) {
        part.entries = {entry};
        session.backward(part);
      }
      session.synchronize();
      expect_good(subject, problem, session.download());
    }
  }
}

void same_call_gives_same_bits(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    const Problem problem = small_problem(subject, dtype, 10);
    const auto bits = [&] {
      Session session(subject, problem);
      session.forward();
      session.backward();
      session.synchronize();
      return session.images();
    };
    const auto first = bits();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(bits(), first);
  }
}

void head_shift_moves_every_entry(const Subject& subject) {
  const DType dtype = subject.dtypes().front();
  Problem problem = small_problem(subject, dtype, 11);
  const auto bits = [&] {
    Session session(subject, problem);
    session.forward();
    session.backward();
    session.synchronize();
    return session.images();
  };
  const auto expected = bits();
  problem.call.q_head_shift = -3;
  problem.call.kv_head_shift = 5;
  for (Entry& entry : problem.call.entries) {
    entry.q_head += 3;
    entry.kv_head -= 5;
  }
  EXPECT_EQ(bits(), expected);
}

void failure_poisons(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    const HostTensor tensor(dtype, 5, 3, 8, 1.0);
    const DeviceTensor whole(subject, tensor, {true, 8, 16});
    const DeviceTensor broken(subject, tensor, {true, 8, 16});
    const auto backend = subject.make_backend();
    const auto healthy = subject.make_stream();
    backend->poison_on_failure(whole.view(), *healthy);
    healthy->synchronize();
    EXPECT_EQ(whole.download().values, tensor.values);
    const auto failing = subject.make_stream();
    subject.fail(*failing);
    backend->fill(broken.view(), 2.0, *failing);
    backend->poison_on_failure(broken.view(), *failing);
    EXPECT_THROW(failing->synchronize(), Error);
    const HostTensor poisoned = broken.download();
    EXPECT_TRUE(std::all_of(poisoned.values.begin(), poisoned.values.end(),
                            [](double value) { return std::isnan(value); }));
  }
}

void arguments_are_copied(const Subject& subject) {
  const Problem problem = small_problem(subject, subject.dtypes().front(), 12);
  Session session(subject, problem);
  {
    AttentionCall call = problem.call;
    session.forward(call);
    session.backward(call);
    call.entries.assign(call.entries.size(), Entry{});
  }
  session.synchronize();
  expect_good(subject, problem, session.download());
}

}  // namespace libra::conformance
