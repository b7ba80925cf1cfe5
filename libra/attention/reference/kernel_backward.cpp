#include "libra/attention/reference/kernel_backward.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "libra/attention/reference/elementwise.h"
#include "libra/attention/reference/row_block.h"
#include "libra/attention/reference/storage.h"
#include "libra/attention/reference/tile.h"
#include "libra/attention/reference/tile_math.h"

namespace libra::reference {
namespace {

template <typename Storage>
class BackwardKernel {
 public:
  explicit BackwardKernel(const BackwardTensors& tensors, double scale)
      : tensors_(tensors),
        scale_(static_cast<Acc>(scale)),
        q_(kBlockRows, tensors.q.dim),
        q_transposed_(tensors.q.dim, kBlockRows),
        d_o_(kBlockRows, tensors.v.dim),
        d_o_transposed_(tensors.v.dim, kBlockRows),
        k_(kTileKeys, tensors.k.dim),
        v_(kTileKeys, tensors.v.dim),
        p_(kTileKeys, kBlockRows),
        d_s_(kTileKeys, kBlockRows),
        dq_(kBlockRows, tensors.q.dim),
        dk_(kTileKeys, tensors.k.dim),
        dv_(kTileKeys, tensors.v.dim),
        state_(2, kBlockRows) {}

  /// What the next blocks are of: tensors of other rows, of the same dimensions.
  void set_tensors(const BackwardTensors& tensors) { tensors_ = tensors; }

  void run(const RowBlock& block) {
    if (block.keys() == 0) return;
    begin(block);
    for (std::int64_t first = 0; first < block.keys(); first += kTileKeys) {
      add_keys(block, first, std::min(kTileKeys, block.keys() - first));
    }
    for (std::int64_t row = 0; row < block.rows; ++row) write_dq(block, row);
  }

 private:
  using Acc = Accumulation<Storage>;

  Acc* lse() { return state_.row(0); }
  Acc* delta() { return state_.row(1); }

  void begin(const RowBlock& block) {
    load_rows<Storage>(tensors_.q, block, scale_, q_);
    transpose(q_, block.rows, tensors_.q.dim, q_transposed_);
    load_rows<Storage>(tensors_.d_o, block, Acc{1}, d_o_);
    transpose(d_o_, block.rows, tensors_.v.dim, d_o_transposed_);
    dq_.clear(block.rows);
    state_.clear(2);
    for (std::int64_t row = 0; row < block.rows; ++row) begin_row(block, row);
  }

  void begin_row(const RowBlock& block, std::int64_t row) {
    // A row that saw no key anywhere has LSE -inf and only masked scores: any finite value gives
    // exp(-inf) = 0 where -inf would give NaN.
    const Acc given = *query_vector<const Acc>(tensors_.lse, block, row);
    lse()[row] = given == -std::numeric_limits<Acc>::infinity() ? Acc{0} : given;
    const Storage* const o = query_vector<const Storage>(tensors_.o, block, row);
    const Acc* const d_o = d_o_.row(row);
    Acc dot{0};
    for (std::int64_t c = 0; c < tensors_.v.dim; ++c) dot += rounded<Acc>(o[c]) * d_o[c];
    delta()[row] = dot;
  }

  void add_keys(const RowBlock& block, std::int64_t first, std::int64_t keys) {
    load_keys<Storage>(tensors_.k, block.group, first, keys, k_);
    load_keys<Storage>(tensors_.v, block.group, first, keys, v_);
    recompute(block, first, keys);
    dv_.clear(keys);
    math_.multiply_add({p_.row(0), p_.stride(), 1, &d_o_, &dv_, keys, block.rows, tensors_.v.dim});
    dk_.clear(keys);
    math_.multiply_add(
        {d_s_.row(0), d_s_.stride(), 1, &q_, &dk_, keys, block.rows, tensors_.q.dim});
    math_.multiply_add(
        {d_s_.row(0), 1, d_s_.stride(), &k_, &dq_, block.rows, keys, tensors_.q.dim});
    write_keys(tensors_.dk, block.group, first, keys, dk_);
    write_keys(tensors_.dv, block.group, first, keys, dv_);
  }

  // Leaves the probabilities in p_ and the gradient of the scaled scores in d_s_.
  void recompute(const RowBlock& block, std::int64_t first, std::int64_t keys) {
    p_.clear(keys);
    math_.multiply_add(
        {k_.row(0), k_.stride(), 1, &q_transposed_, &p_, keys, tensors_.q.dim, block.rows});
    apply_mask(block, first, keys, p_);
    d_s_.clear(keys);
    math_.multiply_add(
        {v_.row(0), v_.stride(), 1, &d_o_transposed_, &d_s_, keys, tensors_.v.dim, block.rows});
    math_.score_gradient({&p_, &d_s_, keys, block.rows, lse(), delta()});
  }

  static void write_keys(const TensorView& tensor, const Group& group, std::int64_t first,
                         std::int64_t keys, const Tile<Acc>& gradient) {
    for (std::int64_t key = 0; key < keys; ++key) {
      Acc* const to = vector_at<Acc>(tensor, group.entry->kv_row + first + key, group.kv_head);
      const Acc* const from = gradient.row(key);
      for (std::int64_t c = 0; c < tensor.dim; ++c) to[c] += from[c];
    }
  }

  void write_dq(const RowBlock& block, std::int64_t row) {
    Acc* const to = query_vector<Acc>(tensors_.dq, block, row);
    const Acc* const from = dq_.row(row);
    for (std::int64_t c = 0; c < tensors_.dq.dim; ++c) to[c] += from[c] * scale_;
  }

  BackwardTensors tensors_;
  const TileMath<Acc>& math_ = tile_math<Acc>();
  Acc scale_;
  Tile<Acc> q_, q_transposed_;  // scaled, which is what dK needs, too
  Tile<Acc> d_o_, d_o_transposed_;
  Tile<Acc> k_, v_;
  Tile<Acc> p_, d_s_;  // [keys, rows]
  Tile<Acc> dq_, dk_, dv_;
  Tile<Acc> state_;  // rows: lse, delta
};

template <typename Storage>
void add_gradients(const AttentionCall& call, const BackwardTensors& tensors) {
  BackwardKernel<Storage> kernel(tensors, call.softmax_scale);
  for_each_row_block(call, [&kernel](const RowBlock& block) { kernel.run(block); });
}

// The call with room for one entry, which tensors of its own begin with.
AttentionCall call_of_one(const AttentionCall& call) {
  AttentionCall one;
  one.entries.resize(1);
  one.q_heads = call.q_heads;
  one.kv_heads = call.kv_heads;
  one.softmax_scale = call.softmax_scale;
  return one;
}

// What an entry takes of a tensor.
TensorView part_of(const TensorView& tensor, std::int64_t row, std::int64_t rows, std::int64_t head,
                   std::int32_t heads) {
  TensorView part = tensor;
  part.rows = rows;
  part.heads = heads;
  if (rows == 0) return part;  // the memory may be none
  part.data = static_cast<std::byte*>(tensor.data) +
              (row * tensor.row_stride + head * tensor.head_stride) * element_bytes(tensor.dtype);
  return part;
}

BackwardTensors part_of(const BackwardTensors& t, const AttentionCall& call, const Entry& entry) {
  const auto queries = [&](const TensorView& tensor) {
    return part_of(tensor, entry.q_row, entry.queries,
                   std::int64_t{entry.q_head} + call.q_head_shift, call.q_heads);
  };
  const auto keys = [&](const TensorView& tensor) {
    return part_of(tensor, entry.kv_row, entry.keys,
                   std::int64_t{entry.kv_head} + call.kv_head_shift, call.kv_heads);
  };
  return {queries(t.q),   keys(t.k),     keys(t.v),  queries(t.o), queries(t.lse),
          queries(t.d_o), queries(t.dq), keys(t.dk), keys(t.dv)};
}

// Zeros of the shape of a tensor.
template <typename Acc>
class Sums {
 public:
  explicit Sums(const TensorView& like)
      : values_(static_cast<std::size_t>(like.rows * like.heads * like.dim)), view_(like) {
    view_.data = values_.data();
    view_.dtype = accumulation_dtype(like.dtype);
    view_.row_stride = std::int64_t{like.heads} * like.dim;
    view_.head_stride = like.dim;
  }
  const TensorView& view() const { return view_; }

 private:
  std::vector<Acc> values_;
  TensorView view_;
};

// No gradient has a second source: the sums of one entry are final. A call may have 70,000 entries,
// so nothing but those sums is made anew for each.
template <typename Storage>
void write_gradients(const AttentionCall& call, const BackwardTensors& tensors) {
  BackwardKernel<Storage> kernel(tensors, call.softmax_scale);
  AttentionCall one = call_of_one(call);
  for (const Entry& entry : call.entries) {
    const BackwardTensors written = part_of(tensors, call, entry);
    const Sums<Accumulation<Storage>> dq(written.dq), dk(written.dk), dv(written.dv);
    BackwardTensors summed = written;
    summed.dq = dq.view();
    summed.dk = dk.view();
    summed.dv = dv.view();
    one.entries[0] = {0, entry.queries, 0, entry.keys, 0, 0, entry.mask};
    kernel.set_tensors(summed);
    for_each_row_block(one, [&kernel](const RowBlock& block) { kernel.run(block); });
    run_convert(summed.dq, written.dq);
    run_convert(summed.dk, written.dk);
    run_convert(summed.dv, written.dv);
  }
}

}  // namespace

void run_backward(const AttentionCall& call, const BackwardTensors& tensors) {
  with_storage(tensors.q.dtype, [&](auto storage) {
    using Storage = decltype(storage);
    if (call.gradients == Gradients::kWritten) {
      write_gradients<Storage>(call, tensors);
    } else {
      add_gradients<Storage>(call, tensors);
    }
  });
}

}  // namespace libra::reference
