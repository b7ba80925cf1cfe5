#include "libra/runtime/pipeliner.h"

#include <fmt/format.h>

#include <utility>

#include "libra/base/error.h"
#include "libra/base/units.h"
#include "libra/runtime/backward_pass.h"
#include "libra/runtime/forward_pass.h"

namespace libra {
namespace {

void check_workers(const PoolPlan& plan, const Transport& transport) {
  if (transport.workers() != plan.workers()) {
    throw ConfigError(fmt::format("the plan is for {} workers, the transport has {}",
                                  plan.workers(), transport.workers()));
  }
}

// What the plan has for one of the caller's tensors. Those that take part in the exchange move as
// strided rows of bytes.
struct Expected {
  const char* name = "";
  const TensorView& tensor;
  std::int32_t heads = 0;
  std::int32_t dim = 0;
  DType dtype = DType::kFp64;
  bool exchanged = true;
};

void check_tensor(const Expected& expected, std::int64_t rows) {
  const TensorView& tensor = expected.tensor;
  if (tensor.rows != rows || tensor.heads != expected.heads || tensor.dim != expected.dim ||
      tensor.dtype != expected.dtype) {
    throw ConfigError(
        fmt::format("{} is [{}, {}, {}] {}: the plan has [{}, {}, {}] {} for this worker",
                    expected.name, tensor.rows, tensor.heads, tensor.dim, dtype_name(tensor.dtype),
                    rows, expected.heads, expected.dim, dtype_name(expected.dtype)));
  }
  if (expected.exchanged && tensor.heads > 1 && tensor.head_stride != tensor.dim) {
    throw ConfigError(fmt::format(
        "{} has head stride {}: the heads of a row must lie one after the other, at stride {}",
        expected.name, tensor.head_stride, tensor.dim));
  }
}

std::vector<std::int64_t> strides_of(const ForwardTensors& own) {
  std::vector<std::int64_t> strides;
  for (const TensorView& tensor : {own.q, own.k, own.v, own.o, own.lse}) {
    strides.insert(strides.end(), {tensor.row_stride, tensor.head_stride});
  }
  return strides;
}

// The caller's gradients take part in a call that writes them, and in no other.
std::vector<std::int64_t> strides_of(const BackwardTensors& own, bool writes) {
  std::vector<std::int64_t> strides =
      strides_of(ForwardTensors{own.q, own.k, own.v, own.o, own.lse});
  strides.insert(strides.end(), {own.d_o.row_stride, own.d_o.head_stride});
  if (!writes) return strides;
  for (const TensorView& tensor : {own.dq, own.dk, own.dv}) {
    strides.insert(strides.end(), {tensor.row_stride, tensor.head_stride});
  }
  return strides;
}

void check_memory(const char* name, const std::byte* memory, std::int64_t bytes) {
  if (memory != nullptr || bytes == 0) return;
  throw ConfigError(
      fmt::format("{} memory is null: this plan needs {}", name, format_bytes(bytes)));
}

}  // namespace

Pipeliner::Pipeliner(const PoolPlan& plan, WorkerContext& context)
    : plan_(plan),
      context_((check_workers(plan, context.transport), context)),
      program_(make_worker_program(plan, context.transport.worker(), context.whole_limits)),
      routes_(plan, program_, plan_memory(plan)) {}

void Pipeliner::check_arena() const {
  if (context_.transport.arena_bytes() < memory().arena.bytes) {
    throw ConfigError(fmt::format(
        "worker {} has an arena of {} and the plan needs {}: reserve it before the pass",
        program_.worker, format_bytes(context_.transport.arena_bytes()),
        format_bytes(memory().arena.bytes)));
  }
}

// Of a prepared pass the layout in memory is remembered: tensors of another one need another graph.
template <typename Pass>
void Pipeliner::prepare_once(Pass& pass, Strides strides, Strides& prepared) {
  if (strides == prepared) return;
  pass.prepare();
  prepared = std::move(strides);
}

void Pipeliner::prepare(const BackwardTensors& own, std::byte* saved, std::byte* scratch,
                        Stream& stream) {
  const ForwardTensors forward_tensors{own.q, own.k, own.v, own.o, own.lse};
  check_forward(forward_tensors, saved);
  check_gradients(own);
  check_memory("scratch", scratch, memory().scratch.bytes);
  const PassArguments arguments{plan_, program_, routes_, context_, 1.0, saved, stream};
  ForwardPass forward_pass(arguments, forward_tensors);
  prepare_once(forward_pass, strides_of(forward_tensors), prepared_forward_);
  BackwardPass backward_pass(arguments, own, scratch);
  prepare_once(backward_pass, strides_of(own, backward_pass.writes()), prepared_backward_);
}

void Pipeliner::forward(const ForwardTensors& own, double softmax_scale, std::byte* saved,
                        Stream& stream) {
  check_forward(own, saved);
  ForwardPass pass({plan_, program_, routes_, context_, softmax_scale, saved, stream}, own);
  prepare_once(pass, strides_of(own), prepared_forward_);
  pass.run();
}

void Pipeliner::backward(const BackwardTensors& own, double softmax_scale, std::byte* saved,
                         std::byte* scratch, Stream& stream) {
  check_forward({own.q, own.k, own.v, own.o, own.lse}, saved);
  check_gradients(own);
  check_memory("scratch", scratch, memory().scratch.bytes);
  BackwardPass pass({plan_, program_, routes_, context_, softmax_scale, saved, stream}, own,
                    scratch);
  prepare_once(pass, strides_of(own, pass.writes()), prepared_backward_);
  pass.run();
}

void Pipeliner::check_forward(const ForwardTensors& own, const std::byte* saved) const {
  const AttentionShape& shape = plan_.options.shape;
  const DType stored = plan_.options.storage;
  for (const Expected& expected :
       {Expected{"Q", own.q, program_.q_heads, shape.head_dim, stored},
        Expected{"K", own.k, program_.kv_heads, shape.head_dim, stored},
        Expected{"V", own.v, program_.kv_heads, shape.value_dim, stored},
        Expected{"O", own.o, program_.q_heads, shape.value_dim, stored},
        Expected{"LSE", own.lse, program_.q_heads, 1, accumulation_dtype(stored)}}) {
    check_tensor(expected, program_.rows);
  }
  check_arena();
  check_memory("saved", saved, memory().saved.bytes);
}

void Pipeliner::check_gradients(const BackwardTensors& own) const {
  const AttentionShape& shape = plan_.options.shape;
  const DType stored = plan_.options.storage;
  for (const Expected& expected :
       {Expected{"dO", own.d_o, program_.q_heads, shape.value_dim, stored},
        Expected{"dQ", own.dq, program_.q_heads, shape.head_dim, stored},
        Expected{"dK", own.dk, program_.kv_heads, shape.head_dim, stored, false},
        Expected{"dV", own.dv, program_.kv_heads, shape.value_dim, stored, false}}) {
    check_tensor(expected, program_.rows);
  }
}

}  // namespace libra
