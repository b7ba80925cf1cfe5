#include "libra/attention/conformance/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace libra::conformance {
namespace {

struct Fp64Arithmetic {
  using Real = double;
  static constexpr bool kBackwardFromStored = false;
  static double store(double value) { return value; }
};

struct Fp32Arithmetic {
  using Real = float;
  static constexpr bool kBackwardFromStored = true;
  static float store(float value) { return value; }
};

template <DType kStorage>
struct LowPrecision {
  using Real = float;
  static constexpr bool kBackwardFromStored = true;
  static float store(float value) { return static_cast<float>(round_to(kStorage, value)); }
};

// The definition in attention.h, one (query, key) at a time.
bool sees(const Entry& entry, std::int64_t query, std::int64_t key) {
  if (entry.mask == Mask::kTopLeftCausal) return key <= query;
  if (entry.mask == Mask::kBottomRightCausal) return key <= query + entry.keys - entry.queries;
  return true;
}

template <typename Real>
Real dot(const double* a, const double* b, std::int32_t dim) {
  Real sum{0};
  for (std::int32_t c = 0; c < dim; ++c) sum += static_cast<Real>(a[c]) * static_cast<Real>(b[c]);
  return sum;
}

double absolute_dot(const double* a, const double* b, std::int32_t dim) {
  double sum = 0;
  for (std::int32_t c = 0; c < dim; ++c) sum += std::abs(a[c] * b[c]);
  return sum;
}

// One query of one head of one entry.
struct Row {
  const Entry* entry;
  std::int64_t query;
  std::int64_t q_row, q_head;
  std::int64_t kv_row, kv_head;
};

template <typename Function>
void for_each_row(const AttentionCall& call, Function&& function) {
  for (const Entry& entry : call.entries) {
    for (std::int32_t head = 0; head < call.q_heads; ++head) {
      const std::int64_t q_head = entry.q_head + call.q_head_shift + head;
      const std::int64_t kv_head =
          entry.kv_head + call.kv_head_shift + head * call.kv_heads / call.q_heads;
      for (std::int64_t query = 0; query < entry.queries; ++query) {
        function(Row{&entry, query, entry.q_row + query, q_head, entry.kv_row, kv_head});
      }
    }
  }
}

template <typename Arithmetic>
class Dense {
 public:
  using Real = typename Arithmetic::Real;

  Dense(const Problem& problem, bool rounds_gradients, double poison)
      : problem_(problem),
        rounds_gradients_(rounds_gradients),
        scale_(static_cast<Real>(problem.call.softmax_scale)),
        results_(blank_results(problem, poison)) {
    if (rounds_gradients) {
      part_ = results_;
      for (HostTensor* tensor : {&part_.dq, &part_.dk, &part_.dv}) {
        std::fill(tensor->values.begin(), tensor->values.end(), 0.0);
      }
    }
    if (problem.call.gradients == Gradients::kWritten) {
      set_named_gradients(problem.call, 0.0, results_);
    } else {
      magnitudes_.dq = magnitudes_.dk = magnitudes_.dv = std::abs(problem.initial_gradient);
    }
  }

  Truth run() {
    for_each_row(problem_.call, [this](const Row& row) {
      attend(row);
      if (rounds_gradients_ && row.query + 1 == row.entry->queries) add_part(row);
    });
    return {results_, magnitudes_};
  }

 private:
  void attend(const Row& row) {
    score(row);
    softmax(row);
    output(row);
    if constexpr (Arithmetic::kBackwardFromStored) recompute(row);
    backward(row);
  }

  void score(const Row& row) {
    const double* const q = problem_.q.vector(row.q_row, row.q_head);
    p_.assign(static_cast<std::size_t>(row.entry->keys), -std::numeric_limits<Real>::infinity());
    seen_.clear();
    for (std::int64_t key = 0; key < row.entry->keys; ++key) {
      if (!sees(*row.entry, row.query, key)) continue;
      seen_.push_back(key);
      const double* const k = problem_.k.vector(row.kv_row + key, row.kv_head);
      p_[at(key)] = Arithmetic::store(scale_ * dot<Real>(q, k, problem_.q.dim));
      grow(magnitudes_.lse,
           std::abs(problem_.call.softmax_scale) * absolute_dot(q, k, problem_.q.dim));
    }
  }

  void softmax(const Row& row) {
    scores_ = p_;
    Real largest = -std::numeric_limits<Real>::infinity();
    for (const Real s : p_) largest = std::max(largest, s);
    Real sum{0};
    for (Real& s : p_) sum += s = std::isinf(s) ? Real{0} : std::exp(s - largest);
    if (sum > Real{0}) {
      for (Real& s : p_) s = Arithmetic::store(s / sum);
    }
    const Real lse = sum > Real{0} ? largest + std::log(sum) : largest;
    *results_.lse.vector(row.q_row, row.q_head) = static_cast<double>(lse);
    if (!std::isinf(lse)) grow(magnitudes_.lse, std::abs(static_cast<double>(lse)));
  }

  void output(const Row& row) {
    const auto columns = static_cast<std::size_t>(problem_.v.dim);
    std::vector<Real> sums(columns, Real{0});
    std::vector<double> terms(columns, 0);
    for (const std::int64_t key : seen_) {
      const double* const v = problem_.v.vector(row.kv_row + key, row.kv_head);
      const Real p = p_[at(key)];
      for (std::size_t c = 0; c < columns; ++c) {
        sums[c] += p * static_cast<Real>(v[c]);
        terms[c] += static_cast<double>(p) * std::abs(v[c]);
      }
    }
    double* const o = results_.o.vector(row.q_row, row.q_head);
    for (std::size_t c = 0; c < columns; ++c) {
      o[c] = static_cast<double>(Arithmetic::store(sums[c]));
      grow(magnitudes_.o, terms[c]);
    }
  }

  // P again, from the stored LSE.
  void recompute(const Row& row) {
    const auto lse = static_cast<Real>(*results_.lse.vector(row.q_row, row.q_head));
    for (std::size_t j = 0; j < p_.size(); ++j) {
      p_[j] = std::isinf(scores_[j]) ? Real{0} : Arithmetic::store(std::exp(scores_[j] - lse));
    }
  }

  // dS_j = P_j (dP_j - sum_i P_i dP_i), where the sum is dO . O, too.
  void backward(const Row& row) {
    const double* const d_o = problem_.d_o.vector(row.q_row, row.q_head);
    std::vector<Real> d_p(p_.size());
    std::vector<double> terms(p_.size());
    Real mean{0};
    double mean_terms = 0;
    for (const std::int64_t key : seen_) {
      const std::size_t j = at(key);
      const double* const v = problem_.v.vector(row.kv_row + key, row.kv_head);
      d_p[j] = Arithmetic::store(dot<Real>(d_o, v, problem_.v.dim));
      terms[j] = absolute_dot(d_o, v, problem_.v.dim);
      mean += p_[j] * d_p[j];
      mean_terms += static_cast<double>(p_[j]) * terms[j];
    }
    if constexpr (Arithmetic::kBackwardFromStored) {
      mean = dot<Real>(d_o, results_.o.vector(row.q_row, row.q_head), problem_.v.dim);
    }
    for (const std::int64_t key : seen_) {
      const std::size_t j = at(key);
      const Real d_s = Arithmetic::store(p_[j] * (d_p[j] - mean));
      add_gradients(row, key, d_s, static_cast<double>(p_[j]) * (terms[j] + mean_terms));
    }
    grow_key_gradients(row, d_o);
  }

  void add_gradients(const Row& row, std::int64_t key, Real d_s, double d_s_terms) {
    const double* const q = problem_.q.vector(row.q_row, row.q_head);
    const double* const k = problem_.k.vector(row.kv_row + key, row.kv_head);
    Results& sums = rounds_gradients_ ? part_ : results_;
    accumulate(sums.dq.vector(row.q_row, row.q_head), d_s * scale_, k, problem_.q.dim);
    accumulate(sums.dk.vector(row.kv_row + key, row.kv_head), d_s * scale_, q, problem_.q.dim);
    const double* const d_o = problem_.d_o.vector(row.q_row, row.q_head);
    accumulate(sums.dv.vector(row.kv_row + key, row.kv_head), p_[at(key)], d_o, problem_.v.dim);
    const double scaled = d_s_terms * std::abs(problem_.call.softmax_scale);
    grow(magnitudes_.dq, scaled * largest(k, problem_.q.dim));
    grow(largest_d_s_, scaled);
  }

  // What the row's keys have in common.
  void grow_key_gradients(const Row& row, const double* d_o) {
    const double* const q = problem_.q.vector(row.q_row, row.q_head);
    grow(magnitudes_.dk, largest_d_s_ * largest(q, problem_.q.dim));
    largest_d_s_ = 0;
    double largest_p = 0;
    for (const std::int64_t key : seen_) grow(largest_p, static_cast<double>(p_[at(key)]));
    grow(magnitudes_.dv, largest_p * largest(d_o, problem_.v.dim));
  }

  // Adds the part of the entry and head that `last` is the last row of, rounded, and clears it.
  void add_part(const Row& last) {
    const Entry& entry = *last.entry;
    add_rounded(part_.dq, results_.dq, entry.q_row, entry.queries, last.q_head);
    add_rounded(part_.dk, results_.dk, entry.kv_row, entry.keys, last.kv_head);
    add_rounded(part_.dv, results_.dv, entry.kv_row, entry.keys, last.kv_head);
  }

  static void add_rounded(HostTensor& part, HostTensor& sum, std::int64_t first_row,
                          std::int64_t rows, std::int64_t head) {
    for (std::int64_t row = first_row; row < first_row + rows; ++row) {
      double* const from = part.vector(row, head);
      double* const to = sum.vector(row, head);
      for (std::int32_t c = 0; c < part.dim; ++c) {
        const auto rounded = static_cast<double>(Arithmetic::store(static_cast<Real>(from[c])));
        to[c] = static_cast<double>(static_cast<Real>(to[c] + rounded));
        from[c] = 0;
      }
    }
  }

  static void accumulate(double* to, Real factor, const double* from, std::int32_t dim) {
    for (std::int32_t c = 0; c < dim; ++c) {
      to[c] = static_cast<double>(static_cast<Real>(to[c]) + factor * static_cast<Real>(from[c]));
    }
  }

  static double largest(const double* values, std::int32_t dim) {
    double result = 0;
    for (std::int32_t c = 0; c < dim; ++c) result = std::max(result, std::abs(values[c]));
    return result;
  }

  static void grow(double& magnitude, double value) { magnitude = std::max(magnitude, value); }
  static std::size_t at(std::int64_t key) { return static_cast<std::size_t>(key); }

  const Problem& problem_;
  bool rounds_gradients_;
  Real scale_;
  Results results_;
  Results part_;  // gradients of the entry and head at hand, if they are rounded
  Magnitudes magnitudes_;
  std::vector<Real> p_;  // scores, then probabilities of the row at hand
  std::vector<Real> scores_;
  std::vector<std::int64_t> seen_;  // keys of the row at hand
  double largest_d_s_ = 0;          // of its terms
};

}  // namespace

Truth exact(const Problem& problem, double poison) {
  return Dense<Fp64Arithmetic>(problem, false, poison).run();
}

Results same_precision(const Problem& problem, bool rounds_gradients, double poison) {
  if (problem.q.dtype == DType::kFp32) {
    return Dense<Fp32Arithmetic>(problem, rounds_gradients, poison).run().results;
  }
  if (problem.q.dtype == DType::kFp16) {
    return Dense<LowPrecision<DType::kFp16>>(problem, rounds_gradients, poison).run().results;
  }
  return Dense<LowPrecision<DType::kBf16>>(problem, rounds_gradients, poison).run().results;
}

}  // namespace libra::conformance
