#include "libra/runtime/worker_run.h"

#include <exception>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/runtime/agreement.h"
#include "libra/runtime/sharding.h"

namespace libra {
namespace {

// The sequence's inputs, cut to one worker.
struct OwnTensors {
  HostTensor q, k, v, d_o;

  OwnTensors(const PoolPlan& plan, std::int32_t worker, const SequenceTensors& sequence)
      : q(shard_of(plan, worker, sequence.q, HeadKind::kQuery)),
        k(shard_of(plan, worker, sequence.k, HeadKind::kKv)),
        v(shard_of(plan, worker, sequence.v, HeadKind::kKv)),
        d_o(shard_of(plan, worker, sequence.d_o, HeadKind::kQuery)) {}
};

LayerOutputs make_outputs(const PoolPlan& plan, std::int64_t rows, std::int32_t share) {
  const AttentionShape& shape = plan.options.shape;
  const DType stored = plan.options.storage;
  const std::int32_t q_heads = shape.q_heads / share;
  const std::int32_t kv_heads = shape.kv_heads / share;
  return {HostTensor(rows, q_heads, shape.value_dim, stored),
          HostTensor(rows, q_heads, 1, accumulation_dtype(stored)),
          HostTensor(rows, q_heads, shape.head_dim, stored),
          HostTensor(rows, kv_heads, shape.head_dim, stored),
          HostTensor(rows, kv_heads, shape.value_dim, stored)};
}

// Waits for the stream before what was declared above it is freed, whichever way the scope is left.
class StreamGuard {
 public:
  explicit StreamGuard(Stream& stream) : stream_(stream) {}
  ~StreamGuard() {
    try {
      stream_.synchronize();
    } catch (const std::exception&) {  // has been, or is being, thrown where it happened
    }
  }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Stream& stream_;
};

const PoolPlan& agreed(const PoolPlan& plan, WorkerContext& context, Stream& stream) {
  Agreement(plan_fingerprint(plan), context, stream).check();
  return plan;
}

}  // namespace

SequenceTensors random_inputs(const PoolPlan& plan, std::int32_t replica, std::uint64_t seed) {
  const AttentionShape& shape = plan.options.shape;
  const DType stored = plan.options.storage;
  const std::int64_t tokens = plan.sequences[at(replica)].tokens;
  SequenceTensors tensors{HostTensor(tokens, shape.q_heads, shape.head_dim, stored),
                          HostTensor(tokens, shape.kv_heads, shape.head_dim, stored),
                          HostTensor(tokens, shape.kv_heads, shape.value_dim, stored),
                          HostTensor(tokens, shape.q_heads, shape.value_dim, stored)};
  Rng rng(seed, static_cast<std::uint64_t>(replica));
  for (HostTensor* tensor : {&tensors.q, &tensors.k, &tensors.v, &tensors.d_o})
    tensor->fill_normal(rng);
  return tensors;
}

LayerOutputs sequence_outputs(const PoolPlan& plan, std::int32_t replica) {
  return make_outputs(plan, plan.sequences[at(replica)].tokens, 1);
}

void gather_outputs(const PoolPlan& plan, std::int32_t worker, const LayerOutputs& own,
                    LayerOutputs& sequence) {
  gather_into(plan, worker, own.o, HeadKind::kQuery, sequence.o);
  gather_into(plan, worker, own.lse, HeadKind::kQuery, sequence.lse);
  gather_into(plan, worker, own.dq, HeadKind::kQuery, sequence.dq);
  gather_into(plan, worker, own.dk, HeadKind::kKv, sequence.dk);
  gather_into(plan, worker, own.dv, HeadKind::kKv, sequence.dv);
}

// The plans are compared first: what does not fit may be another worker's fault.
WorkerRun::WorkerRun(const PoolPlan& plan, const WorkerSite& site)
    : plan_(plan),
      site_(site),
      context_{site.attention, site.transport, log_, site.first_step, nullptr, site.whole_limits},
      stream_(site.memory.make_stream()),
      pipeliner_(agreed(plan, context_, *stream_), context_) {
  if (pipeliner_.program().has_relays) {
    relays_ = site_.memory.make_stream();
    context_.relays = relays_.get();
  }
  site_.transport.reserve_arena(max_arena_bytes(plan));  // the same on every worker
}

// The cause may lie beside the stream.
void WorkerRun::synchronize() const {
  try {
    stream_->synchronize();
  } catch (const TransportError&) {
    if (relays_ != nullptr) relays_->synchronize();
    throw;
  }
}

void WorkerRun::execute(const SequenceTensors& sequence, double softmax_scale) {
  const std::int32_t worker = site_.transport.worker();
  log_.clear();
  OwnTensors inputs(plan_, worker, sequence);
  outputs_ = make_outputs(plan_, plan_.layout.part_of(worker).rows, plan_.options.tp);
  const auto place = [this](HostTensor& tensor) { return Mirror(site_.memory, tensor); };
  const Mirror q = place(inputs.q), k = place(inputs.k), v = place(inputs.v);
  const Mirror d_o = place(inputs.d_o);
  Mirror o = place(outputs_.o), lse = place(outputs_.lse);
  Mirror dq = place(outputs_.dq), dk = place(outputs_.dk), dv = place(outputs_.dv);
  const auto saved = site_.memory.allocate(pipeliner_.memory().saved.bytes);
  const auto scratch = site_.memory.allocate(pipeliner_.memory().scratch.bytes);
  const StreamGuard guard(*stream_);
  try {
    pipeliner_.forward({q.view(), k.view(), v.view(), o.view(), lse.view()}, softmax_scale,
                       saved.get(), *stream_);
    pipeliner_.backward({q.view(), k.view(), v.view(), o.view(), lse.view(), d_o.view(), dq.view(),
                         dk.view(), dv.view()},
                        softmax_scale, saved.get(), scratch.get(), *stream_);
  } catch (const TransportError&) {
    synchronize();  // throws the cause if it was this worker's own
    throw;
  }
  synchronize();
  for (Mirror* output : {&o, &lse, &dq, &dk, &dv}) output->fetch();
  records_ = site_.transport.take_records();
}

}  // namespace libra
