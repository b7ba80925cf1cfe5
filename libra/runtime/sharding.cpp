#include "libra/runtime/sharding.h"

#include "libra/base/index.h"

namespace libra {
namespace {

struct OwnHeads {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

OwnHeads own_heads(const PoolPlan& plan, std::int32_t worker, HeadKind kind) {
  const AttentionShape& shape = plan.options.shape;
  const std::int32_t all = kind == HeadKind::kQuery ? shape.q_heads : shape.kv_heads;
  const std::int32_t count = all / plan.options.tp;
  return {worker % plan.options.tp * count, count};
}

// Calls visit(own row, sequence token) for every row of the worker.
template <typename Visit>
void for_each_row(const PoolPlan& plan, std::int32_t worker, const Visit& visit) {
  std::int64_t row = 0;
  for (const TokenRange run : plan.layout.part_of(worker).runs) {
    for (std::int64_t token = run.begin; token < run.end; ++token) visit(row++, token);
  }
}

}  // namespace

HostTensor shard_of(const PoolPlan& plan, std::int32_t worker, const HostTensor& sequence,
                    HeadKind kind) {
  const OwnHeads heads = own_heads(plan, worker, kind);
  HostTensor own(plan.layout.part_of(worker).rows, heads.count, sequence.dim(), sequence.dtype());
  for_each_row(plan, worker, [&](std::int64_t row, std::int64_t token) {
    for (std::int32_t head = 0; head < heads.count; ++head) {
      for (std::int32_t c = 0; c < own.dim(); ++c) {
        own.set(row, head, c, sequence.get(token, heads.first + head, c));
      }
    }
  });
  return own;
}

void gather_into(const PoolPlan& plan, std::int32_t worker, const HostTensor& own, HeadKind kind,
                 HostTensor& sequence) {
  const OwnHeads heads = own_heads(plan, worker, kind);
  for_each_row(plan, worker, [&](std::int64_t row, std::int64_t token) {
    for (std::int32_t head = 0; head < heads.count; ++head) {
      for (std::int32_t c = 0; c < own.dim(); ++c) {
        sequence.set(token, heads.first + head, c, own.get(row, head, c));
      }
    }
  });
}

}  // namespace libra
