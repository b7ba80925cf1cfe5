#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "libra/attention/conformance/cases.h"
#include "libra/attention/conformance/judge.h"
#include "libra/attention/conformance/session.h"

namespace libra::conformance {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool all_nan(const HostTensor& tensor) {
  return std::all_of(tensor.values.begin(), tensor.values.end(),
                     [](double value) { return std::isnan(value); });
}

// Named rows are put back; then every byte, gaps included, must be the NaN that it was.
void expect_the_rest_untouched(const Subject& subject, const Problem& problem,
                               const Layouts& layouts, const Session& session) {
  const Results written = session.download();
  const auto images = session.images();
  EXPECT_EQ(images[2], DeviceTensor(subject, written.dq, layouts[6]).image()) << "dQ";
  EXPECT_EQ(images[3], DeviceTensor(subject, written.dk, layouts[7]).image()) << "dK";
  EXPECT_EQ(images[4], DeviceTensor(subject, written.dv, layouts[8]).image()) << "dV";
  Results rest = written;
  set_named_gradients(problem.call, kNaN, rest);
  EXPECT_TRUE(all_nan(rest.dq) && all_nan(rest.dk) && all_nan(rest.dv));
}

// What was written, and zeros elsewhere, where there is NaN.
Results without_the_rest(const Problem& problem, const Results& written) {
  Results named = blank_results(problem, 0.0);
  set_named_gradients(problem.call, 1.0, named);
  Results result = written;
  for (const auto tensor : {&Results::dq, &Results::dk, &Results::dv}) {
    for (std::size_t i = 0; i < (named.*tensor).values.size(); ++i) {
      if ((named.*tensor).values[i] == 0.0) (result.*tensor).values[i] = 0.0;
    }
  }
  return result;
}

// Some tensors dense.
Layouts some_dense(Rng& rng) {
  Layouts layouts = random_layouts(rng);
  for (Layout& layout : layouts) {
    if (rng.below(2) == 0) layout = {};
  }
  return layouts;
}

// Adds what a call writes to the judge; false if the backend cannot write it. Written twice: over
// NaN, which would stay if anything were added to it, then over the results.
bool judge_written(const Subject& subject, Problem problem, const std::string& label, Rng& rng,
                   Judge& judge) {
  SCOPED_TRACE(label);
  const Layouts layouts = some_dense(rng);
  problem.initial_gradient = kNaN;
  Session session(subject, problem, layouts, 0.5);
  if (!session.backend().can_write(session.call(), session.backward_views())) return false;
  session.forward();
  session.backward();
  session.backward();
  session.synchronize();
  expect_the_rest_untouched(subject, problem, layouts, session);
  problem.initial_gradient = 0.0;
  judge.add(label, problem, without_the_rest(problem, session.download()), 0.5);
  return true;
}

using MakeProblem = Problem (*)(DType, HeadDims, Rng&);

void expect_written(const Subject& subject, MakeProblem make) {
  std::string refused;
  const auto judge_seeds = [&](DType dtype, HeadDims dims, const std::string& label, Judge& judge) {
    for (std::uint64_t seed = 0; seed < 2; ++seed) {
      const std::string name = fmt::format("{}, seed {}", label, seed);
      Rng rng(seed, 1);
      const Problem problem = make(dtype, dims, rng);
      if (!judge_written(subject, problem, name, rng, judge)) refused = name;
    }
  };
  for_each_dtype_and_dims(subject, judge_seeds);
  if (!refused.empty()) GTEST_SKIP() << "the backend cannot write the gradients of " << refused;
}

}  // namespace

void squares_are_written(const Subject& subject) { expect_written(subject, random_squares); }

void squares_of_all_heads_are_written(const Subject& subject) {
  expect_written(subject, random_squares_of_all_heads);
}

void disjoint_entries_are_written(const Subject& subject) {
  expect_written(subject, random_disjoint_problem);
}

// Queries without keys, and keys that no query sees.
void what_sees_nothing_is_written_as_zero(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    SCOPED_TRACE(dtype_name(dtype));
    Rng rng(40);
    AttentionCall call;
    call.gradients = Gradients::kWritten;
    call.entries = {{0, 40, 0, 0, 0, 0, Mask::kFull},
                    {40, 50, 0, 20, 0, 0, Mask::kBottomRightCausal},  // 30 see no key
                    {90, 0, 20, 30, 0, 0, Mask::kFull},
                    {90, 60, 50, 90, 0, 0, Mask::kTopLeftCausal}};  // 30 are seen by no query
    Problem problem = make_problem(call, {dtype, subject.head_dims().front(), 150, 140, 1, 1}, rng);
    problem.initial_gradient = kNaN;
    Session session(subject, problem);
    if (!session.backend().can_write(session.call(), session.backward_views())) {
      GTEST_SKIP() << "the backend cannot write the gradients of this call";
    }
    session.forward();
    session.backward();
    session.synchronize();
    const Results results = session.download();
    const auto expect_zero = [](const HostTensor& tensor, std::int64_t begin, std::int64_t end) {
      EXPECT_TRUE(std::all_of(tensor.vector(begin, 0), tensor.vector(end, 0),
                              [](double value) { return value == 0.0; }))
          << "rows " << begin << " to " << end;
    };
    expect_zero(results.dq, 0, 70);
    for (const HostTensor& keys : {results.dk, results.dv}) {
      expect_zero(keys, 20, 50);
      expect_zero(keys, 110, 140);
    }
    problem.initial_gradient = 0.0;
    expect_good(subject, problem, results);
  }
}

}  // namespace libra::conformance
