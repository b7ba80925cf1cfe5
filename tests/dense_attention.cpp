#include "tests/dense_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "libra/base/bfloat16.h"
#include "libra/base/index.h"

namespace libra::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What every intermediate value goes through.
using Rounding = double (*)(double);

double exact(double value) { return value; }
double to_bf16(double value) {
  return static_cast<double>(static_cast<float>(Bf16(static_cast<float>(value))));
}

// One head of a tensor: a matrix of tokens x dim.
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int32_t dim, double value)
      : dim_(dim), values_(at(rows * dim), value) {}

  Matrix(const HostTensor& tensor, std::int32_t head) : Matrix(tensor.rows(), tensor.dim(), 0) {
    for (std::int64_t row = 0; row < tensor.rows(); ++row) {
      for (std::int32_t c = 0; c < dim_; ++c) (*this)[row][c] = tensor.get(row, head, c);
    }
  }

  void store(HostTensor& tensor, std::int32_t head) const {
    for (std::int64_t row = 0; row < tensor.rows(); ++row) {
      for (std::int32_t c = 0; c < dim_; ++c) tensor.set(row, head, c, (*this)[row][c]);
    }
  }

  double* operator[](std::int64_t row) { return values_.data() + row * dim_; }
  const double* operator[](std::int64_t row) const { return values_.data() + row * dim_; }
  std::int32_t dim() const { return dim_; }

 private:
  std::int32_t dim_;
  std::vector<double> values_;
};

double dot(const double* a, const double* b, std::int32_t dim) {
  double sum = 0;
  for (std::int32_t c = 0; c < dim; ++c) sum += a[c] * b[c];
  return sum;
}

// to += factor * from
void add(double factor, const double* from, double* to, std::int32_t dim) {
  for (std::int32_t c = 0; c < dim; ++c) to[c] += factor * from[c];
}

// One query head and its KV head.
struct Head {
  Matrix q, k, v, d_o;
  Matrix o, lse, dq;
  Matrix dk, dv;  // this query head's share

  Head(const SequenceTensors& in, std::int32_t q_head, std::int32_t kv_head)
      : q(in.q, q_head),
        k(in.k, kv_head),
        v(in.v, kv_head),
        d_o(in.d_o, q_head),
        o(in.q.rows(), in.v.dim(), 0),
        lse(in.q.rows(), 1, -kInfinity),
        dq(in.q.rows(), in.q.dim(), 0),
        dk(in.k.rows(), in.k.dim(), 0),
        dv(in.v.rows(), in.v.dim(), 0) {}
};

// Of `query` over keys [first, query]; sets the LSE.
std::vector<double> probabilities(Head& head, std::int64_t first, std::int64_t query,
                                  double scale) {
  std::vector<double> p(at(query - first + 1));
  for (std::int64_t key = first; key <= query; ++key) {
    p[at(key - first)] = scale * dot(head.q[query], head.k[key], head.q.dim());
  }
  const double largest = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& value : p) sum += (value = std::exp(value - largest));
  for (double& value : p) value /= sum;
  head.lse[query][0] = largest + std::log(sum);
  return p;
}

// O = P V;  dP = dO V^T;  dS = P (dP - sum(dO O)) with O as it was stored;  dQ = scale dS K;
// dK = scale dS^T Q;  dV = P^T dO.
void attend(Head& head, std::int64_t first, std::int64_t query, double scale, Rounding round) {
  std::vector<double> p = probabilities(head, first, query, scale);
  for (double& value : p) value = round(value);
  for (std::int64_t key = first; key <= query; ++key) {
    add(p[at(key - first)], head.v[key], head.o[query], head.v.dim());
  }
  double mean = 0;
  for (std::int32_t c = 0; c < head.o.dim(); ++c) {
    mean += head.d_o[query][c] * round(head.o[query][c]);
  }
  for (std::int64_t key = first; key <= query; ++key) {
    const double probability = p[at(key - first)];
    const double dp = dot(head.d_o[query], head.v[key], head.v.dim());
    const double ds = round(scale * probability * (dp - mean));
    add(ds, head.k[key], head.dq[query], head.q.dim());
    add(ds, head.q[query], head.dk[key], head.q.dim());
    add(probability, head.d_o[query], head.dv[key], head.v.dim());
  }
}

void add_share(Matrix& share, HostTensor& sum, std::int32_t head, Rounding round) {
  Matrix total(sum, head);
  for (std::int64_t row = 0; row < sum.rows(); ++row) {
    for (std::int32_t c = 0; c < share.dim(); ++c) share[row][c] = round(share[row][c]);
    add(1.0, share[row], total[row], share.dim());
  }
  total.store(sum, head);
}

HostTensor zeros(const HostTensor& like, std::int32_t dim) {
  HostTensor tensor(like.rows(), like.heads(), dim, DType::kFp64);
  const Matrix zero(like.rows(), dim, 0);
  for (std::int32_t head = 0; head < like.heads(); ++head) zero.store(tensor, head);
  return tensor;
}

void round_all(HostTensor& tensor, Rounding round) {
  for (std::int32_t head = 0; head < tensor.heads(); ++head) {
    Matrix matrix(tensor, head);
    for (std::int64_t row = 0; row < tensor.rows(); ++row) {
      for (std::int32_t c = 0; c < tensor.dim(); ++c) matrix[row][c] = round(matrix[row][c]);
    }
    matrix.store(tensor, head);
  }
}

LayerOutputs compute(const PackedSequence& sequence, const SequenceTensors& in,
                     double softmax_scale, Rounding round) {
  LayerOutputs out{zeros(in.q, in.v.dim()), zeros(in.q, 1), zeros(in.q, in.q.dim()),
                   zeros(in.k, in.k.dim()), zeros(in.v, in.v.dim())};
  for (std::int32_t q_head = 0; q_head < in.q.heads(); ++q_head) {
    const std::int32_t kv_head = q_head / (in.q.heads() / in.k.heads());
    Head head(in, q_head, kv_head);
    std::int64_t begin = 0;
    for (const std::int64_t tokens : sequence.sample_tokens) {
      for (std::int64_t i = 0; i < tokens; ++i) {
        attend(head, begin, begin + i, softmax_scale, round);
      }
      begin += tokens;
    }
    head.o.store(out.o, q_head);
    head.lse.store(out.lse, q_head);
    head.dq.store(out.dq, q_head);
    add_share(head.dk, out.dk, kv_head, round);
    add_share(head.dv, out.dv, kv_head, round);
  }
  for (HostTensor* tensor : {&out.o, &out.dq, &out.dk, &out.dv}) round_all(*tensor, round);
  return out;
}

}  // namespace

LayerOutputs dense_attention(const PackedSequence& sequence, const SequenceTensors& inputs,
                             double softmax_scale) {
  return compute(sequence, inputs, softmax_scale, exact);
}

LayerOutputs dense_attention_in_bf16(const PackedSequence& sequence, const SequenceTensors& inputs,
                                     double softmax_scale) {
  return compute(sequence, inputs, softmax_scale, to_bf16);
}

}  // namespace libra::testing
