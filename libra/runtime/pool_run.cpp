#include "libra/runtime/pool_run.h"

#include <exception>
#include <mutex>
#include <thread>

#include "libra/base/error.h"
#include "libra/base/index.h"

namespace libra {
namespace {

// The error that explains a failure. When one worker fails for its own reason, the others fail with
// TransportErrors that follow from it and may come first.
class FirstError {
 public:
  void keep(std::exception_ptr error, bool follows) {
    const std::lock_guard lock(mutex_);
    if (error_ && (!follows_ || follows)) return;
    error_ = std::move(error);
    follows_ = follows;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  bool follows_ = false;
};

struct PoolTask {
  const PoolPlan& plan;
  AttentionBackend& backend;
  const std::vector<SequenceTensors>& inputs;
  double softmax_scale;
  std::vector<LayerOutputs> outputs;  // by worker
  std::vector<WorkerTrace> traces;    // by worker
};

void run_worker(PoolTask& task, Transport& transport) {
  const std::int32_t worker = transport.worker();
  WorkerRun run(task.plan, transport, task.backend);
  run.execute(task.inputs[at(task.plan.layout.part_of(worker).replica)], task.softmax_scale);
  const auto& events = run.log().events();
  task.outputs[at(worker)] = run.outputs();
  task.traces[at(worker)] = {
      {events.begin(), events.end()}, run.records(), run.log().cpu_seconds()};
}

void run_workers(PoolTask& task, std::vector<std::unique_ptr<Transport>>& endpoints) {
  FirstError first_error;
  std::vector<std::jthread> threads;  // joined even if not all can be started
  threads.reserve(endpoints.size());
  for (const auto& endpoint : endpoints) {
    threads.emplace_back([&task, &first_error, transport = endpoint.get()] {
      try {
        run_worker(task, *transport);
      } catch (const std::exception& error) {
        const bool follows = dynamic_cast<const TransportError*>(&error) != nullptr;
        first_error.keep(std::current_exception(), follows);
        transport->abort(error.what());
      }
    });
  }
  threads.clear();
  first_error.rethrow();
}

}  // namespace

std::vector<SequenceTensors> random_pool_inputs(const PoolPlan& plan, std::uint64_t seed) {
  std::vector<SequenceTensors> inputs;
  for (std::size_t replica = 0; replica < plan.sequences.size(); ++replica) {
    inputs.push_back(random_inputs(plan, static_cast<std::int32_t>(replica), seed));
  }
  return inputs;
}

PoolRun run_pool(const PoolPlan& plan, std::vector<std::unique_ptr<Transport>>& endpoints,
                 AttentionBackend& backend, const std::vector<SequenceTensors>& inputs,
                 double softmax_scale) {
  PoolTask task{plan, backend, inputs, softmax_scale, {}, {}};
  task.outputs.resize(at(plan.workers()));
  task.traces.resize(at(plan.workers()));
  run_workers(task, endpoints);
  PoolRun run;
  for (std::size_t replica = 0; replica < plan.sequences.size(); ++replica) {
    run.sequences.push_back(sequence_outputs(plan, static_cast<std::int32_t>(replica)));
  }
  for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
    gather_outputs(plan, worker, task.outputs[at(worker)],
                   run.sequences[at(plan.layout.part_of(worker).replica)]);
  }
  run.workers = std::move(task.traces);
  return run;
}

}  // namespace libra
