#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "libra/attention/conformance/cases.h"
#include "libra/attention/conformance/judge.h"
#include "libra/attention/conformance/session.h"

namespace libra::conformance {
namespace {

constexpr Mask kMasks[] = {Mask::kTopLeftCausal, Mask::kBottomRightCausal, Mask::kFull};

template <typename Function>
void for_each_dtype_and_dims(const Subject& subject, Function&& function) {
  for (const DType dtype : subject.dtypes()) {
    for (const HeadDims dims : subject.head_dims()) {
      SCOPED_TRACE(fmt::format("{}, dims {} and {}", dtype_name(dtype), dims.qk, dims.v));
      function(dtype, dims);
    }
  }
}

// Lengths of 0 to 5 on both sides under every mask, one entry each, in one call.
AttentionCall every_tiny_entry(Shape& shape) {
  AttentionCall call;
  for (const Mask mask : kMasks) {
    for (std::int64_t queries = 0; queries < 6; ++queries) {
      for (std::int64_t keys = 0; keys < 6; ++keys) {
        call.entries.push_back({shape.q_rows, queries, shape.kv_rows, keys, 0, 0, mask});
        shape.q_rows += queries;
        shape.kv_rows += keys;
      }
    }
  }
  return call;
}

}  // namespace

void random_problems_match(const Subject& subject) {
  for_each_dtype_and_dims(subject, [&](DType dtype, HeadDims dims) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      SCOPED_TRACE(fmt::format("seed {}", seed));
      Rng rng(seed);
      const Problem problem = random_problem(dtype, dims, rng);
      const double poison = 7.0;
      expect_good(problem, run(subject, problem, random_layouts(rng), poison), poison);
    }
  });
}

void every_tiny_shape_matches(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    Rng rng(1);
    Shape shape{dtype, subject.head_dims().front()};
    const AttentionCall call = every_tiny_entry(shape);
    const Problem problem = make_problem(call, shape, rng);
    expect_good(problem, run(subject, problem));
  }
}

void every_head_count_and_dim_matches(const Subject& subject) {
  std::size_t turn = 0;  // every mask meets every head count, and every dim meets both
  for_each_dtype_and_dims(subject, [&](DType dtype, HeadDims dims) {
    ++turn;
    for (const std::int32_t kv_heads : {8, 2, 1}) {
      const Mask mask = kMasks[turn++ % 3];
      SCOPED_TRACE(fmt::format("8:{} heads, mask {}", kv_heads, static_cast<int>(mask)));
      Rng rng(2);
      const Problem problem = single_entry({dtype, dims, 37, 70, 8, kv_heads}, mask, rng);
      expect_good(problem, run(subject, problem));
    }
  });
}

void huge_scores_stay_finite(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", dtype_name(dtype), seed));
      Rng rng(seed);
      Shape shape{dtype, subject.head_dims().front(), 200, 200, 4, 2, 100.0, 100.0};
      const Problem problem = single_entry(shape, Mask::kBottomRightCausal, rng);
      expect_good(problem, run(subject, problem));
    }
  }
}

void custom_scale_matches(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    for (const double scale : {0.3, -0.05, 0.0}) {
      SCOPED_TRACE(fmt::format("{}, scale {}", dtype_name(dtype), scale));
      Rng rng(4);
      Shape shape{dtype, subject.head_dims().front(), 50, 90, 2, 1};
      Problem problem = single_entry(shape, Mask::kBottomRightCausal, rng);
      problem.call.softmax_scale = scale;
      expect_good(problem, run(subject, problem));
    }
  }
}

void shared_keys_sum_their_gradients(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    Rng rng(5);
    AttentionCall call;
    for (std::int64_t i = 0; i < 5; ++i) {
      call.entries.push_back({i * 20, 20, i * 7, 100, 0, 0, kMasks[i % 3]});
    }
    call.q_heads = 4;
    call.kv_heads = 2;
    const Shape shape{dtype, subject.head_dims().front(), 100, 130, 4, 2};
    const Problem problem = make_problem(call, shape, rng);
    expect_good(problem, run(subject, problem));
  }
}

}  // namespace libra::conformance
