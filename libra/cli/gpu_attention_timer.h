// Times attention calls on one GPU, on random bf16 data of head dimension 128.
//
//   GpuAttentionTimer timer(0, 1 << 18);
//   const TimedCall call = saturating_call({0, 4096}, 4, timer.rows());
//   timer.forward_seconds(call, 5);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libra/attention/attention.h"
#include "libra/base/range.h"

namespace libra::cli {

/// The same work for both passes.
struct TimedCall {
  std::vector<Entry> forward;   ///< bottom-right causal
  std::vector<Entry> backward;  ///< top-left squares and full rectangles
  std::int32_t q_heads = 1;
  std::int32_t kv_heads = 1;
  std::int64_t pairs = 0;  ///< query-key pairs times query heads
  bool whole = false;      ///< backward, gradients are written: whole samples, as in the runtime

  double forward_flops() const { return 4.0 * kDim * static_cast<double>(pairs); }
  double backward_flops() const { return 2.5 * forward_flops(); }

  static constexpr std::int32_t kDim = 128;
  /// Of the tensors; entries use some of them.
  static constexpr std::int32_t kQHeads = 32;
  static constexpr std::int32_t kKvHeads = 8;
};

/// `count` entries with these queries of a sample, for `heads` query heads and a quarter as many KV
/// heads (at least one), side by side in the rows and heads of the tensors. Requires room for them.
TimedCall repeated_call(TokenRange queries, std::int32_t heads, std::int64_t count,
                        std::int64_t rows);

/// As many as take about 4 ms on a fast device, or that many times as long as one block of queries
/// that the end of the call, when not all multiprocessors have work, hardly counts; or that fit.
/// Forward, entries may share keys, as in plans; backward, what two of them add to the same
/// gradients would cost time of its own.
TimedCall saturating_call(TokenRange queries, std::int32_t heads, std::int64_t rows,
                          bool keys_shared);

class GpuAttentionTimer {
 public:
  /// Tensors of `rows` rows, 41 KB of device memory each.
  GpuAttentionTimer(std::int32_t device, std::int64_t rows);
  ~GpuAttentionTimer();
  GpuAttentionTimer(const GpuAttentionTimer&) = delete;
  GpuAttentionTimer& operator=(const GpuAttentionTimer&) = delete;

  std::int64_t rows() const;

  /// Device time of the call, median of the repetitions after two that do not count.
  double forward_seconds(const TimedCall& call, int repetitions);
  double backward_seconds(const TimedCall& call, int repetitions);

  /// Read and written by additions of one KV head's gradient, as it comes from a peer; likewise.
  double added_bytes_per_second(int repetitions);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace libra::cli
