#include "tests/dense_attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "libra/base/index.h"

namespace libra::testing {
namespace {

// One query head over one sample.
class HeadAttention {
 public:
  HeadAttention(const SequenceTensors& in, LayerOutputs& out, double scale, std::int32_t head)
      : in_(in), out_(out), scale_(scale), head_(head), kv_(head / (in.q.heads() / in.k.heads())) {}

  void run(std::int64_t begin, std::int64_t end) {
    for (std::int64_t query = begin; query < end; ++query) run_query(begin, query);
  }

 private:
  void run_query(std::int64_t first_key, std::int64_t query) {
    const std::vector<double> p = probabilities(first_key, query);
    for (std::int32_t c = 0; c < in_.v.dim(); ++c) {
      double o = 0;
      for (std::size_t j = 0; j < p.size(); ++j)
        o += p[j] * in_.v.get(first_key + static_cast<std::int64_t>(j), kv_, c);
      out_.o.set(query, head_, c, o);
    }
    add_gradients(first_key, query, p);
  }

  std::vector<double> probabilities(std::int64_t first_key, std::int64_t query) {
    std::vector<double> p(at(query - first_key + 1));
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < p.size(); ++j) {
      p[j] =
          scale_ * dot(in_.q, query, head_, in_.k, first_key + static_cast<std::int64_t>(j), kv_);
      largest = std::max(largest, p[j]);
    }
    double sum = 0;
    for (double& value : p) sum += (value = std::exp(value - largest));
    for (double& value : p) value /= sum;
    out_.lse.set(query, head_, 0, largest + std::log(sum));
    return p;
  }

  // dP = dO V^T;  dS = P (dP - sum(P dP));  dQ = scale dS K;  dK = scale dS^T Q;  dV = P^T dO.
  void add_gradients(std::int64_t first_key, std::int64_t query, const std::vector<double>& p) {
    std::vector<double> dp(p.size());
    double mean = 0;
    for (std::size_t j = 0; j < p.size(); ++j) {
      dp[j] = dot(in_.d_o, query, head_, in_.v, first_key + static_cast<std::int64_t>(j), kv_);
      mean += p[j] * dp[j];
    }
    for (std::size_t j = 0; j < p.size(); ++j) {
      const std::int64_t key = first_key + static_cast<std::int64_t>(j);
      const double ds = scale_ * p[j] * (dp[j] - mean);
      for (std::int32_t c = 0; c < in_.q.dim(); ++c) {
        accumulate(out_.dq, query, head_, c, ds * in_.k.get(key, kv_, c));
        accumulate(out_.dk, key, kv_, c, ds * in_.q.get(query, head_, c));
      }
      for (std::int32_t c = 0; c < in_.v.dim(); ++c) {
        accumulate(out_.dv, key, kv_, c, p[j] * in_.d_o.get(query, head_, c));
      }
    }
  }

  static void accumulate(HostTensor& tensor, std::int64_t row, std::int32_t head, std::int32_t c,
                         double value) {
    tensor.set(row, head, c, tensor.get(row, head, c) + value);
  }

  static double dot(const HostTensor& a, std::int64_t a_row, std::int32_t a_head,
                    const HostTensor& b, std::int64_t b_row, std::int32_t b_head) {
    double sum = 0;
    for (std::int32_t c = 0; c < a.dim(); ++c)
      sum += a.get(a_row, a_head, c) * b.get(b_row, b_head, c);
    return sum;
  }

  const SequenceTensors& in_;
  LayerOutputs& out_;
  double scale_;
  std::int32_t head_;
  std::int32_t kv_;
};

HostTensor filled(std::int64_t rows, std::int32_t heads, std::int32_t dim, double value) {
  HostTensor tensor(rows, heads, dim, DType::kFp64);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int32_t head = 0; head < heads; ++head) {
      for (std::int32_t c = 0; c < dim; ++c) tensor.set(row, head, c, value);
    }
  }
  return tensor;
}

}  // namespace

LayerOutputs dense_attention(const PackedSequence& sequence, const SequenceTensors& in,
                             double softmax_scale) {
  LayerOutputs out{
      filled(sequence.tokens, in.q.heads(), in.v.dim(), 0),
      filled(sequence.tokens, in.q.heads(), 1, -std::numeric_limits<double>::infinity()),
      filled(sequence.tokens, in.q.heads(), in.q.dim(), 0),
      filled(sequence.tokens, in.k.heads(), in.k.dim(), 0),
      filled(sequence.tokens, in.v.heads(), in.v.dim(), 0)};
  for (std::int32_t head = 0; head < in.q.heads(); ++head) {
    HeadAttention attention(in, out, softmax_scale, head);
    std::int64_t begin = 0;
    for (const std::int64_t tokens : sequence.sample_tokens) {
      attention.run(begin, begin + tokens);
      begin += tokens;
    }
  }
  return out;
}

}  // namespace libra::testing
