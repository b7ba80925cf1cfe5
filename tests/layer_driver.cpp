#include "tests/layer_driver.h"

#include <initializer_list>

#include "libra/base/task_queue.h"
#include "libra/runtime/sharding.h"
#include "tests/compare_outputs.h"
#include "tests/pool_check.h"

namespace libra::testing {
namespace {

LayerOutputs own_expected(const PoolPlan& plan, std::int32_t worker,
                          const SequenceTensors& inputs) {
  const LayerOutputs all = expected_outputs(plan, plan.layout.part_of(worker).replica, inputs);
  return {shard_of(plan, worker, all.o, HeadKind::kQuery),
          shard_of(plan, worker, all.lse, HeadKind::kQuery),
          shard_of(plan, worker, all.dq, HeadKind::kQuery),
          shard_of(plan, worker, all.dk, HeadKind::kKv),
          shard_of(plan, worker, all.dv, HeadKind::kKv)};
}

// A value that a result can only be by being wrong.
void overwrite(HostTensor& tensor) {
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int32_t head = 0; head < tensor.heads(); ++head) {
      for (std::int32_t c = 0; c < tensor.dim(); ++c) tensor.set(row, head, c, 777);
    }
  }
}

// In stream order: an earlier pass may still be at work.
void forget(std::initializer_list<HostTensor*> tensors, Stream& stream) {
  for (HostTensor* tensor : tensors) {
    dynamic_cast<TaskQueue&>(stream).enqueue([tensor] { overwrite(*tensor); });
  }
}

}  // namespace

LayerDriver::LayerDriver(const PoolPlan& plan, std::int32_t worker, std::uint64_t seed)
    : LayerDriver(plan, worker, random_inputs(plan, plan.layout.part_of(worker).replica, seed)) {}

LayerDriver::LayerDriver(const PoolPlan& plan, std::int32_t worker, const SequenceTensors& inputs)
    : expected_(own_expected(plan, worker, inputs)),
      q_(shard_of(plan, worker, inputs.q, HeadKind::kQuery)),
      k_(shard_of(plan, worker, inputs.k, HeadKind::kKv)),
      v_(shard_of(plan, worker, inputs.v, HeadKind::kKv)),
      d_o_(shard_of(plan, worker, inputs.d_o, HeadKind::kQuery)),
      outputs_(expected_),
      saved_(plan_memory(plan)[static_cast<std::size_t>(worker)].saved.bytes),
      scratch_(plan_memory(plan)[static_cast<std::size_t>(worker)].scratch.bytes) {
  for (const auto tensor : {&LayerOutputs::o, &LayerOutputs::lse, &LayerOutputs::dq,
                            &LayerOutputs::dk, &LayerOutputs::dv}) {
    overwrite(outputs_.*tensor);
  }
}

void LayerDriver::forward(Pipeliner& pipeliner, Stream& stream) {
  forget({&outputs_.o, &outputs_.lse}, stream);
  pipeliner.forward({q_.view(), k_.view(), v_.view(), outputs_.o.view(), outputs_.lse.view()},
                    kSoftmaxScale, saved_.data(), stream);
}

void LayerDriver::backward(Pipeliner& pipeliner, Stream& stream) {
  forget({&outputs_.dq, &outputs_.dk, &outputs_.dv}, stream);
  pipeliner.backward({q_.view(), k_.view(), v_.view(), outputs_.o.view(), outputs_.lse.view(),
                      d_o_.view(), outputs_.dq.view(), outputs_.dk.view(), outputs_.dv.view()},
                     kSoftmaxScale, saved_.data(), scratch_.data(), stream);
}

std::string LayerDriver::wrong_in_forward() const {
  return first_difference("O", expected_.o, outputs_.o, kTolerance) +
         first_difference("LSE", expected_.lse, outputs_.lse, kTolerance);
}

std::string LayerDriver::wrong_in_backward() const {
  return first_difference("dQ", expected_.dq, outputs_.dq, kTolerance) +
         first_difference("dK", expected_.dk, outputs_.dk, kTolerance) +
         first_difference("dV", expected_.dv, outputs_.dv, kTolerance);
}

bool LayerDriver::forward_is_nan() const { return all_nan(outputs_.o) && all_nan(outputs_.lse); }

bool LayerDriver::backward_is_nan() const {
  return all_nan(outputs_.dq) && all_nan(outputs_.dk) && all_nan(outputs_.dv);
}

}  // namespace libra::testing
