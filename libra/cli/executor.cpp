#include "libra/cli/executor.h"

#include <algorithm>

#include "libra/attention/reference/reference_attention.h"
#include "libra/transport/inproc/transport.h"

namespace libra::cli {
namespace {

class InprocExecutor final : public Executor {
 public:
  explicit InprocExecutor(std::chrono::milliseconds deadline) : options_{deadline} {}

  PoolRun execute(const PoolPlan& plan, const std::vector<SequenceTensors>& inputs,
                  double softmax_scale) override {
    auto endpoints = make_inproc_group(plan.workers(), options_);
    const std::int64_t begin = now_ns();
    PoolRun run = run_pool(plan, host_sites(endpoints, attention_), inputs, softmax_scale);
    for (WorkerTrace& trace : run.workers) shift_times(trace, begin);
    return run;
  }

  bool reports() const override { return true; }

 private:
  TransportOptions options_;
  ReferenceAttention attention_;
};

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::unique_ptr<Executor> make_inproc_executor(std::chrono::milliseconds deadline) {
  return std::make_unique<InprocExecutor>(deadline);
}

void shift_times(WorkerTrace& trace, std::int64_t origin_ns) {
  std::erase_if(trace.records,
                [origin_ns](const ExchangeRecord& r) { return r.begin_ns < origin_ns; });
  for (Event& event : trace.events) {
    event.begin.wall_ns -= origin_ns;
    event.end.wall_ns -= origin_ns;
  }
  for (ExchangeRecord& record : trace.records) {
    record.begin_ns -= origin_ns;
    record.end_ns -= origin_ns;
  }
}

}  // namespace libra::cli
