// The ranks of an MPI job as workers. Rank 0 collects what the others did over the transport
// itself, since no MPI call is allowed beside it.
#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/task_queue.h"
#include "libra/cli/mpi_job.h"
#include "libra/runtime/sharding.h"
#include "libra/runtime/tensor_views.h"
#include "libra/transport/mpi/transport.h"

namespace libra::cli {
namespace {

constexpr std::int32_t kCollectStep = 4000;  // far from the steps of a run, which count from 0

using Bytes = std::vector<std::uint8_t>;

Bytes encode(const WorkerTrace& trace) {
  auto json = nlohmann::json{{"busy_seconds", trace.busy_seconds},
                             {"events", nlohmann::json::array()},
                             {"records", nlohmann::json::array()}};
  for (const Event& e : trace.events) {
    json["events"].push_back(
        {e.name, e.chunk, e.begin.wall_ns, e.begin.cpu_ns, e.end.wall_ns, e.end.cpu_ns});
  }
  for (const ExchangeRecord& r : trace.records) {
    json["records"].push_back({r.tag.step, static_cast<int>(r.tag.phase), r.tag.chunk, r.tag.round,
                               r.begin_ns, r.end_ns, r.bytes_sent, r.bytes_received});
  }
  return nlohmann::json::to_cbor(json);
}

WorkerTrace decode(const Bytes& bytes) {
  const nlohmann::json json = nlohmann::json::from_cbor(bytes);
  WorkerTrace trace;
  trace.busy_seconds = json["busy_seconds"];
  for (const auto& e : json["events"]) {
    trace.events.push_back({e[0], e[1], {e[2], e[3]}, {e[4], e[5]}});
  }
  for (const auto& r : json["records"]) {
    const Tag tag{r[0], static_cast<Phase>(r[1].get<int>()), r[2], r[3]};
    trace.records.push_back({tag, r[4], r[5], r[6], r[7]});
  }
  return trace;
}

StridedView one_row(void* data, std::int64_t bytes) {
  return {static_cast<std::byte*>(data), 1, bytes, bytes};
}

// What a worker sends to rank 0, and what rank 0 makes room for.
struct Parcel {
  LayerOutputs outputs;
  Bytes trace;

  std::vector<StridedView> tensors() {
    std::vector<StridedView> views;
    for (HostTensor* tensor : {&outputs.o, &outputs.lse, &outputs.dq, &outputs.dk, &outputs.dv}) {
      if (tensor->rows() > 0) views.push_back(as_rows(tensor->view()));
    }
    return views;
  }
};

// Outputs of a worker, to receive into.
LayerOutputs room_for(const PoolPlan& plan, std::int32_t worker) {
  const std::int32_t replica = plan.layout.part_of(worker).replica;
  const LayerOutputs whole = sequence_outputs(plan, replica);
  return {shard_of(plan, worker, whole.o, HeadKind::kQuery),
          shard_of(plan, worker, whole.lse, HeadKind::kQuery),
          shard_of(plan, worker, whole.dq, HeadKind::kQuery),
          shard_of(plan, worker, whole.dk, HeadKind::kKv),
          shard_of(plan, worker, whole.dv, HeadKind::kKv)};
}

class Collector {
 public:
  explicit Collector(Transport& transport) : transport_(transport) {}

  void send(Parcel parcel) {
    auto bytes = static_cast<std::int64_t>(parcel.trace.size());
    exchange(0, {{0, one_row(&bytes, sizeof bytes)}}, {});
    std::vector<Transfer> sends = {{0, one_row(parcel.trace.data(), bytes)}};
    for (const StridedView& view : parcel.tensors()) sends.push_back({0, view});
    exchange(1, sends, {});
  }

  /// Of ranks 1 and up, in order.
  std::vector<Parcel> receive(const PoolPlan& plan) {
    std::vector<Parcel> parcels(at(plan.workers() - 1));
    std::vector<std::int64_t> bytes(parcels.size());
    std::vector<Transfer> receives;
    for (std::size_t i = 0; i < parcels.size(); ++i) {
      receives.push_back({static_cast<std::int32_t>(i) + 1, one_row(&bytes[i], sizeof bytes[i])});
    }
    exchange(0, {}, receives);
    receives.clear();
    for (std::size_t i = 0; i < parcels.size(); ++i) {
      const std::int32_t worker = static_cast<std::int32_t>(i) + 1;
      parcels[i] = {room_for(plan, worker), Bytes(at(bytes[i]))};
      receives.push_back({worker, one_row(parcels[i].trace.data(), bytes[i])});
      for (const StridedView& view : parcels[i].tensors()) receives.push_back({worker, view});
    }
    exchange(1, {}, receives);
    return parcels;
  }

 private:
  void exchange(std::int32_t chunk, const std::vector<Transfer>& sends,
                const std::vector<Transfer>& receives) {
    const Tag tag{kCollectStep, Phase::kAgree, chunk, 0};
    transport_.wait(transport_.post({tag, sends, receives}, stream_), stream_);
    stream_.synchronize();
    transport_.take_records();
  }

  Transport& transport_;
  TaskQueue stream_;
};

class MpiExecutor final : public Executor {
 public:
  MpiExecutor(const MpiSession& session, std::chrono::milliseconds deadline)
      : transport_(make_mpi_transport(session, {deadline})) {}

  PoolRun execute(const PoolPlan& plan, const std::vector<SequenceTensors>& inputs,
                  double softmax_scale) override {
    const std::int32_t worker = transport_->worker();
    WorkerRun run(plan, {*transport_, attention_});
    const std::int64_t begin = now_ns();  // all ranks come here together: they have just agreed
    run.execute(inputs[at(plan.layout.part_of(worker).replica)], softmax_scale);
    const auto& events = run.log().events();
    WorkerTrace trace{{events.begin(), events.end()}, run.records(), run.log().busy_seconds()};
    shift_times(trace, begin);
    Collector collector(*transport_);
    if (!reports()) {
      collector.send({run.outputs(), encode(trace)});
      return {};
    }
    return assemble(plan, run.outputs(), std::move(trace), collector.receive(plan));
  }

  bool reports() const override { return transport_->worker() == 0; }

 private:
  static PoolRun assemble(const PoolPlan& plan, const LayerOutputs& own, WorkerTrace trace,
                          const std::vector<Parcel>& others) {
    PoolRun run;
    for (std::size_t replica = 0; replica < plan.sequences.size(); ++replica) {
      run.sequences.push_back(sequence_outputs(plan, static_cast<std::int32_t>(replica)));
    }
    gather_outputs(plan, 0, own, run.sequences.front());
    run.workers.push_back(std::move(trace));
    for (const Parcel& parcel : others) {
      const auto worker = static_cast<std::int32_t>(run.workers.size());
      gather_outputs(plan, worker, parcel.outputs,
                     run.sequences[at(plan.layout.part_of(worker).replica)]);
      run.workers.push_back(decode(parcel.trace));
    }
    return run;
  }

  std::unique_ptr<Transport> transport_;
  ReferenceAttention attention_;
};

class OpenMpiJob final : public MpiJob {
 public:
  std::int32_t rank() const override { return session_.rank(); }
  std::int32_t size() const override { return session_.size(); }
  void end(int exit_code) override { session_.end_job(exit_code); }

  std::unique_ptr<Executor> make_executor(std::int32_t workers,
                                          std::chrono::milliseconds deadline) override {
    if (size() != workers) {
      throw ConfigError(fmt::format(
          "--transport mpi: the pool needs P x CP = {} ranks, this job has {}: start it with "
          "mpirun -n {}",
          workers, size(), workers));
    }
    return std::make_unique<MpiExecutor>(session_, deadline);
  }

 private:
  int argc_ = 0;
  char** argv_ = nullptr;
  MpiSession session_{&argc_, &argv_};
};

}  // namespace

std::unique_ptr<MpiJob> start_mpi_job() { return std::make_unique<OpenMpiJob>(); }

}  // namespace libra::cli
