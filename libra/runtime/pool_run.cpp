#include "libra/runtime/pool_run.h"

#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "libra/base/error.h"
#include "libra/base/index.h"

namespace libra {
namespace {

// The error to report for all threads: the first, but rather one that is no TransportError, since
// those may be about another worker's failure and arrive before that worker's own account of it.
class FirstError {
 public:
  void keep_consequence(std::exception_ptr error) { keep(consequence_, std::move(error)); }
  void keep_cause(std::exception_ptr error) { keep(cause_, std::move(error)); }

  void rethrow() const {
    if (cause_) std::rethrow_exception(cause_);
    if (consequence_) std::rethrow_exception(consequence_);
  }

 private:
  void keep(std::exception_ptr& place, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!place) place = std::move(error);
  }

  std::mutex mutex_;
  std::exception_ptr cause_;
  std::exception_ptr consequence_;
};

struct PoolTask {
  const PoolPlan& plan;
  const std::vector<SequenceTensors>& inputs;
  double softmax_scale;
  std::vector<LayerOutputs> outputs;  // by worker
  std::vector<WorkerTrace> traces;    // by worker
};

void run_worker(PoolTask& task, const WorkerSite& site) {
  const std::int32_t worker = site.transport.worker();
  WorkerRun run(task.plan, site);
  run.execute(task.inputs[at(task.plan.layout.part_of(worker).replica)], task.softmax_scale);
  const auto& events = run.log().events();
  task.outputs[at(worker)] = run.outputs();
  task.traces[at(worker)] = {
      {events.begin(), events.end()}, run.records(), run.log().busy_seconds()};
}

void run_workers(PoolTask& task, const std::vector<WorkerSite>& sites) {
  FirstError first_error;
  std::vector<std::jthread> threads;  // joined even if not all can be started
  threads.reserve(sites.size());
  for (const WorkerSite& site : sites) {
    threads.emplace_back([&task, &first_error, &site] {
      try {
        run_worker(task, site);
      } catch (const TransportError& error) {
        first_error.keep_consequence(std::current_exception());
        site.transport.abort(error.what());
      } catch (const std::exception& error) {
        first_error.keep_cause(std::current_exception());
        site.transport.abort(error.what());
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

std::vector<WorkerSite> host_sites(const std::vector<std::unique_ptr<Transport>>& endpoints,
                                   AttentionBackend& backend) {
  std::vector<WorkerSite> sites;
  sites.reserve(endpoints.size());
  for (const auto& endpoint : endpoints) sites.push_back({*endpoint, backend});
  return sites;
}

PoolRun run_pool(const PoolPlan& plan, const std::vector<WorkerSite>& sites,
                 const std::vector<SequenceTensors>& inputs, double softmax_scale) {
  PoolTask task{plan, inputs, softmax_scale, {}, {}};
  task.outputs.resize(at(plan.workers()));
  task.traces.resize(at(plan.workers()));
  run_workers(task, sites);
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
