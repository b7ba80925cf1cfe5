#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "libra/attention/conformance/cases.h"
#include "libra/attention/conformance/judge.h"
#include "libra/attention/conformance/session.h"

namespace libra::conformance {
namespace {

constexpr Mask kMasks[] = {Mask::kTopLeftCausal, Mask::kBottomRightCausal, Mask::kFull};

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
  const auto judge_seeds = [&](DType dtype, HeadDims dims, const std::string& label, Judge& judge) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      Rng rng(seed);
      const Problem problem = random_problem(dtype, dims, rng);
      const double poison = 0.5;
      judge.add(fmt::format("{}, seed {}", label, seed), problem,
                run(subject, problem, random_layouts(rng), poison), poison);
    }
  };
  for_each_dtype_and_dims(subject, judge_seeds);
}

void every_tiny_shape_matches(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    Rng rng(1);
    Shape shape{dtype, subject.head_dims().front()};
    const AttentionCall call = every_tiny_entry(shape);
    const Problem problem = make_problem(call, shape, rng);
    expect_good(subject, problem, run(subject, problem));
  }
}

void every_head_count_and_dim_matches(const Subject& subject) {
  std::size_t turn = 0;  // every mask meets every head count, and every dim meets both
  const auto judge_heads = [&](DType dtype, HeadDims dims, const std::string& label, Judge& judge) {
    ++turn;
    for (const std::int32_t kv_heads : {8, 2, 1}) {
      const Mask mask = kMasks[turn++ % 3];
      Rng rng(2);
      const Problem problem = single_entry({dtype, dims, 37, 70, 8, kv_heads}, mask, rng);
      judge.add(fmt::format("{}, 8:{} heads, mask {}", label, kv_heads, static_cast<int>(mask)),
                problem, run(subject, problem));
    }
  };
  for_each_dtype_and_dims(subject, judge_heads);
}

// All scores of a row lie near +1e4 or near -1e4: exp overflows or vanishes without the maximum.
void huge_scores_stay_finite(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    SCOPED_TRACE(dtype_name(dtype));
    Rng rng(3);
    const HeadDims dims = subject.head_dims().front();
    Problem problem = single_entry({dtype, dims, 200, 200, 4, 2}, Mask::kBottomRightCausal, rng);
    const double common = std::sqrt(1e4 / problem.call.softmax_scale);
    for (std::int64_t row = 0; row < 200; ++row) {
      const double sign = row % 2 == 0 ? 1.0 : -1.0;
      for (std::int32_t head = 0; head < 4; ++head) {
        problem.q.vector(row, head)[0] = round_to(dtype, sign * common);
      }
      for (std::int32_t head = 0; head < 2; ++head) {
        problem.k.vector(row, head)[0] = round_to(dtype, common);
      }
    }
    expect_good(subject, problem, run(subject, problem));
  }
}

// Scores of about 1e4 that differ as much from each other: nearly every row has one winner.
void far_apart_scores_stay_exact(const Subject& subject) {
  const std::vector<DType> dtypes = subject.dtypes();
  if (std::find(dtypes.begin(), dtypes.end(), DType::kFp64) == dtypes.end()) {
    GTEST_SKIP() << "only fp64 tells a right winner from a near one";
  }
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    const Shape shape{DType::kFp64, subject.head_dims().front(), 200, 200, 4, 2, 100.0, 100.0};
    const Problem problem = single_entry(shape, Mask::kBottomRightCausal, rng);
    expect_good(subject, problem, run(subject, problem));
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
      expect_good(subject, problem, run(subject, problem));
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
    expect_good(subject, problem, run(subject, problem));
  }
}

}  // namespace libra::conformance
