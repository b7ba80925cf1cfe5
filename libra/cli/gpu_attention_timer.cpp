#include "libra/cli/gpu_attention_timer.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "libra/attention/cudnn/cudnn_attention.h"
#include "libra/base/check.h"
#include "libra/cli/gpu_tensors.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"
#include "libra/plan/tiling.h"
#include "libra/runtime/whole_samples.h"

namespace libra::cli {
namespace {

constexpr double kSaturatingFlops = 2.5e12;
constexpr double kBlock = 128;         // queries that a multiprocessor takes at once
constexpr double kBlocksAtOnce = 132;  // of a large GPU
constexpr double kTurns = 24;          // so that the last, partial turn is 2% of the call

void add_entry(TimedCall& call, TokenRange queries, std::int64_t q_row, std::int64_t kv_row,
               std::int32_t group) {
  const std::int32_t q_head = group * call.q_heads;
  const std::int32_t kv_head = q_head * TimedCall::kKvHeads / TimedCall::kQHeads;
  const std::int64_t size = queries.size();
  call.forward.push_back(
      {q_row, size, kv_row, queries.end, q_head, kv_head, Mask::kBottomRightCausal});
  call.backward.push_back(
      {q_row, size, kv_row + queries.begin, size, q_head, kv_head, Mask::kTopLeftCausal});
  if (queries.begin > 0) {
    call.backward.push_back({q_row, size, kv_row, queries.begin, q_head, kv_head, Mask::kFull});
  }
}

}  // namespace

TimedCall repeated_call(TokenRange queries, std::int32_t heads, std::int64_t count,
                        std::int64_t rows) {
  TimedCall call;
  call.q_heads = heads;
  call.kv_heads = std::max(1, heads * TimedCall::kKvHeads / TimedCall::kQHeads);
  const std::int64_t groups = TimedCall::kQHeads / heads;
  const std::int64_t key_places = rows / queries.end;
  LIBRA_CHECK(key_places > 0 && (count + groups - 1) / groups * queries.size() <= rows,
              "{} entries of {} queries do not fit {} rows", count, queries.size(), rows);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = i / groups;
    add_entry(call, queries, place * queries.size(), place % key_places * queries.end,
              static_cast<std::int32_t>(i % groups));
  }
  call.pairs = count * query_key_pairs(queries) * heads;
  const bool own_keys =
      groups * call.kv_heads == TimedCall::kKvHeads && (count + groups - 1) / groups <= key_places;
  call.whole = own_keys && queries.begin == 0 && queries.end <= WholeLimits().max_rows;
  return call;
}

TimedCall saturating_call(TokenRange queries, std::int32_t heads, std::int64_t rows,
                          bool keys_shared) {
  constexpr double kPairFlops = 4.0 * TimedCall::kDim;
  const double flops_each = kPairFlops * heads * static_cast<double>(query_key_pairs(queries));
  const double flops = std::max(kSaturatingFlops, kTurns * kBlocksAtOnce * kPairFlops * kBlock *
                                                      static_cast<double>(queries.end));
  const auto wanted = static_cast<std::int64_t>(std::ceil(flops / flops_each));
  const std::int64_t places =
      std::min(rows / queries.size(), keys_shared ? rows : rows / queries.end);
  const std::int64_t room = places * (TimedCall::kQHeads / heads);
  return repeated_call(queries, heads, std::clamp<std::int64_t>(wanted, 1, room), rows);
}

struct GpuAttentionTimer::Impl {
  Impl(std::int32_t device, std::int64_t row_count)
      : rows(row_count),
        guard(device),
        tensors(device, rows, TimedCall::kQHeads, TimedCall::kKvHeads, TimedCall::kDim),
        stream(device),
        attention(device) {}

  double seconds(const std::function<void()>& enqueue, int repetitions) {
    for (int i = 0; i < 2; ++i) enqueue();  // graphs are built, memory grows
    stream.synchronize();
    std::vector<double> times(static_cast<std::size_t>(repetitions));
    for (double& time : times) {
      Timestamp begin, end;
      stream.mark(&begin);
      enqueue();
      stream.mark(&end);
      stream.synchronize();
      time = static_cast<double>(end.wall_ns - begin.wall_ns) * 1e-9;
    }
    std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
    return times[static_cast<std::size_t>(repetitions / 2)];
  }

  AttentionCall call(const TimedCall& timed, const std::vector<Entry>& entries) const {
    AttentionCall call;
    call.entries = entries;
    call.q_heads = timed.q_heads;
    call.kv_heads = timed.kv_heads;
    call.softmax_scale = 1 / std::sqrt(static_cast<double>(TimedCall::kDim));
    return call;
  }

  std::int64_t rows;
  DeviceGuard guard;
  GpuTensors tensors;
  CudaStream stream;
  CudnnAttention attention;
};

GpuAttentionTimer::GpuAttentionTimer(std::int32_t device, std::int64_t rows)
    : impl_(std::make_unique<Impl>(device, rows)) {}

GpuAttentionTimer::~GpuAttentionTimer() = default;

std::int64_t GpuAttentionTimer::rows() const { return impl_->rows; }

double GpuAttentionTimer::forward_seconds(const TimedCall& call, int repetitions) {
  const AttentionCall forward = impl_->call(call, call.forward);
  return impl_->seconds(
      [&] { impl_->attention.forward(forward, impl_->tensors.forward(), impl_->stream); },
      repetitions);
}

double GpuAttentionTimer::backward_seconds(const TimedCall& call, int repetitions) {
  const AttentionCall forward = impl_->call(call, call.forward);  // leaves O and LSE
  impl_->attention.forward(forward, impl_->tensors.forward(), impl_->stream);
  AttentionCall backward = impl_->call(call, call.backward);
  if (call.whole) backward.gradients = Gradients::kWritten;
  const BackwardTensors tensors =
      call.whole ? impl_->tensors.backward() : impl_->tensors.accumulating();
  return impl_->seconds([&] { impl_->attention.backward(backward, tensors, impl_->stream); },
                        repetitions);
}

double GpuAttentionTimer::added_bytes_per_second(int repetitions) {
  constexpr double kReadReadWrite = 3;
  const BackwardTensors gradients = impl_->tensors.accumulating();
  TensorView sum = gradients.dk;
  sum.heads = 1;
  TensorView share = gradients.dv;
  share.heads = 1;
  share.row_stride = share.head_stride = share.dim;
  const double seconds =
      impl_->seconds([&] { impl_->attention.add(share, sum, impl_->stream); }, repetitions);
  return kReadReadWrite * static_cast<double>(sum.rows * sum.dim * element_bytes(sum.dtype)) /
         seconds;
}

}  // namespace libra::cli
