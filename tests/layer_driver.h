// One worker's tensors of one layer and the memory of its passes, to drive a Pipeliner pass by
// pass where WorkerRun would run them all.
//
// Arena, saved and scratch memory are exactly as large as the plan says, between guard bytes.
#pragma once

#include <cstdint>
#include <string>

#include "libra/runtime/worker_run.h"
#include "tests/guarded_memory.h"

namespace libra::testing {

class LayerDriver {
 public:
  /// Inputs are random_inputs(plan, the worker's replica, seed).
  LayerDriver(const PoolPlan& plan, std::int32_t worker, std::uint64_t seed);

  void forward(Pipeliner& pipeliner, Stream& stream);
  void backward(Pipeliner& pipeliner, Stream& stream);

  /// What is wrong with O and LSE, or with dQ, dK and dV; empty if they are what the plan promises.
  std::string wrong_in_forward() const;
  std::string wrong_in_backward() const;

  /// Whether every element is NaN: a result that nobody takes for one.
  bool forward_is_nan() const;
  bool backward_is_nan() const;

  GuardedMemory& saved() { return saved_; }
  GuardedMemory& scratch() { return scratch_; }

 private:
  LayerDriver(const PoolPlan& plan, std::int32_t worker, const SequenceTensors& inputs);

  LayerOutputs expected_;  // of this worker
  HostTensor q_, k_, v_, d_o_;
  LayerOutputs outputs_;
  GuardedMemory saved_;
  GuardedMemory scratch_;
};

}  // namespace libra::testing
