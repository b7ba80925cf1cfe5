// Between whole sequences and the workers' own tensors: which rows and heads of a sequence a worker
// holds.
#pragma once

#include <cstdint>

#include "libra/plan/pool_plan.h"
#include "libra/runtime/host_tensor.h"

namespace libra {

/// What a tensor's heads are: query heads (Q, O, LSE, gradients of Q and O) or KV heads.
enum class HeadKind : std::uint8_t { kQuery, kKv };

/// The worker's rows and heads of its sequence's tensor [tokens, all heads, dim], in local order.
HostTensor shard_of(const PoolPlan& plan, std::int32_t worker, const HostTensor& sequence,
                    HeadKind kind);

/// The inverse: writes the worker's rows and heads into the sequence's tensor.
void gather_into(const PoolPlan& plan, std::int32_t worker, const HostTensor& own, HeadKind kind,
                 HostTensor& sequence);

}  // namespace libra
