#include "libra/attention/reference/kernel_forward.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "libra/attention/reference/row_block.h"
#include "libra/attention/reference/storage.h"
#include "libra/attention/reference/tile.h"
#include "libra/attention/reference/tile_math.h"

namespace libra::reference {
namespace {

template <typename Storage>
class ForwardKernel {
 public:
  explicit ForwardKernel(const ForwardTensors& tensors, double scale)
      : tensors_(tensors),
        scale_(static_cast<Acc>(scale)),
        q_(kBlockRows, tensors.q.dim),
        q_transposed_(tensors.q.dim, kBlockRows),
        k_(kTileKeys, tensors.k.dim),
        v_(kTileKeys, tensors.v.dim),
        scores_(kTileKeys, kBlockRows),
        o_(kBlockRows, tensors.v.dim),
        state_(3, kBlockRows) {}

  void run(const RowBlock& block) {
    begin(block);
    for (std::int64_t first = 0; first < block.keys(); first += kTileKeys) {
      add_keys(block, first, std::min(kTileKeys, block.keys() - first));
    }
    for (std::int64_t row = 0; row < block.rows; ++row) write(block, row);
  }

 private:
  using Acc = Accumulation<Storage>;

  Acc* max() { return state_.row(0); }
  Acc* sum() { return state_.row(1); }
  Acc* correction() { return state_.row(2); }

  void begin(const RowBlock& block) {
    load_rows<Storage>(tensors_.q, block, scale_, q_);
    transpose(q_, block.rows, tensors_.q.dim, q_transposed_);
    o_.clear(block.rows);
    std::fill_n(max(), state_.stride(), -std::numeric_limits<Acc>::infinity());
    std::fill_n(sum(), state_.stride(), Acc{0});
  }

  void add_keys(const RowBlock& block, std::int64_t first, std::int64_t keys) {
    load_keys<Storage>(tensors_.k, block.group, first, keys, k_);
    load_keys<Storage>(tensors_.v, block.group, first, keys, v_);
    scores_.clear(keys);
    math_.multiply_add(
        {k_.row(0), k_.stride(), 1, &q_transposed_, &scores_, keys, tensors_.q.dim, block.rows});
    apply_mask(block, first, keys, scores_);
    math_.online_softmax({&scores_, keys, block.rows, max(), sum(), correction()});
    for (std::int64_t row = 0; row < block.rows; ++row) rescale(row);
    math_.multiply_add(
        {scores_.row(0), 1, scores_.stride(), &v_, &o_, block.rows, keys, tensors_.v.dim});
  }

  void rescale(std::int64_t row) {
    const Acc factor = correction()[row];
    if (factor == Acc{1}) return;
    Acc* const o = o_.row(row);
    for (std::int64_t c = 0; c < tensors_.v.dim; ++c) o[c] *= factor;
  }

  // A row that saw no key has sum 0; every other has at least exp(0) = 1, or NaN.
  void write(const RowBlock& block, std::int64_t row) {
    const Acc sum_of_row = sum()[row];
    const bool empty = sum_of_row == Acc{0};
    const Acc factor = empty ? Acc{0} : Acc{1} / sum_of_row;
    Storage* const to = query_vector<Storage>(tensors_.o, block, row);
    const Acc* const from = o_.row(row);
    for (std::int64_t c = 0; c < tensors_.o.dim; ++c) to[c] = rounded<Storage>(from[c] * factor);
    *query_vector<Acc>(tensors_.lse, block, row) = max()[row] + (empty ? 0 : std::log(sum_of_row));
  }

  const ForwardTensors& tensors_;
  const TileMath<Acc>& math_ = tile_math<Acc>();
  Acc scale_;
  Tile<Acc> q_, q_transposed_, k_, v_;
  Tile<Acc> scores_;  // [keys, rows], then the probabilities
  Tile<Acc> o_;       // not yet divided by the sum
  Tile<Acc> state_;   // rows: max, sum, correction
};

}  // namespace

void run_forward(const AttentionCall& call, const ForwardTensors& tensors) {
  with_storage(tensors.q.dtype, [&](auto storage) {
    ForwardKernel<decltype(storage)> kernel(tensors, call.softmax_scale);
    for_each_row_block(call, [&kernel](const RowBlock& block) { kernel.run(block); });
  });
}

}  // namespace libra::reference
