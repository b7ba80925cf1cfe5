#include "libra/sim/step_model.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "libra/base/index.h"

namespace libra {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr double kMicro = 1e-6;
constexpr double kBf16Bytes = 2;

double tokens_of(const PackedSequence& sequence) {
  return static_cast<double>(std::accumulate(sequence.sample_tokens.begin(),
                                             sequence.sample_tokens.end(), std::int64_t{0}));
}

// Replicas that wait for each other in every layer.
std::int32_t group_replicas(const Scenario& scenario, std::int32_t pool_replicas) {
  const std::int32_t of_experts =
      std::max(1, (scenario.ep + scenario.plan.cp - 1) / scenario.plan.cp);
  const std::int32_t group = std::lcm(pool_replicas, of_experts);
  return scenario.dp % group == 0 ? group : scenario.dp;
}

/// The longest of a group at one GA index.
struct GroupTimes {
  double attention_forward = 0;
  double attention_backward = 0;
  double tokens = 0;
};

double head_seconds(const Scenario& scenario, double tokens) {
  const double flops = 2.0 * static_cast<double>(scenario.linear.head_parameters(scenario.model));
  return flops * tokens / scenario.plan.cp / (scenario.cluster.linear_tflops * kTera);
}

StageTimes stage_times(const Scenario& scenario, std::int32_t stage, const GroupTimes& group) {
  const double layers = stage_layers(scenario, stage);
  const bool last = stage == scenario.pp - 1;
  const double linear = linear_seconds(scenario, group.tokens);
  const double experts = expert_exchange_seconds(scenario, group.tokens);
  const double head = last ? head_seconds(scenario, group.tokens) : 0;
  const double forward = layers * (group.attention_forward + linear + experts);
  const double gradients = layers * (group.attention_backward + 2 * linear + experts);
  const double again = scenario.recompute ? forward : 0;
  return {forward + head, again + gradients + 2 * head};
}

// [stage][GA index]
std::vector<std::vector<StageTimes>> stage_times(const Scenario& scenario,
                                                 const std::vector<GroupTimes>& groups) {
  std::vector<std::vector<StageTimes>> times(at(scenario.pp));
  for (std::int32_t stage = 0; stage < scenario.pp; ++stage) {
    times[at(stage)].reserve(groups.size());
    for (const GroupTimes& group : groups) {
      times[at(stage)].push_back(stage_times(scenario, stage, group));
    }
  }
  return times;
}

// Core attention of a stage's layers.
double attention_seconds(const Scenario& scenario, const std::vector<GroupTimes>& groups) {
  double seconds = 0;
  for (const GroupTimes& group : groups) {
    seconds += group.attention_forward * (scenario.recompute ? 2 : 1) + group.attention_backward;
  }
  return seconds * stage_layers(scenario, 0);
}

class Step {
 public:
  Step(const Environment& environment, const std::vector<std::vector<PoolTimes>>& attention,
       std::span<const PackedSequence> slots)
      : scenario_(environment.scenario()), attention_(attention), slots_(slots) {
    pool_ = scenario_.dp / static_cast<std::int32_t>(attention.front().size());
    group_ = group_replicas(scenario_, pool_);
  }

  StepTimes run() {
    StepTimes step;
    double slowest = -1;
    std::vector<std::vector<double>> forward(at(scenario_.ga()));
    for (std::int32_t group = 0; group < scenario_.dp / group_; ++group) {
      const std::vector<GroupTimes> times = times_of(group);
      auto schedule = schedule_1f1b(stage_times(scenario_, times), transfer_seconds());
      for (const PipelineOperation& operation : schedule.front()) {
        if (operation.backward) continue;
        forward[at(operation.microbatch)].push_back(operation.end - operation.begin);
      }
      if (makespan(schedule) <= slowest) continue;
      slowest = makespan(schedule);
      step.attention_s = attention_seconds(scenario_, times);
      step.slowest = std::move(schedule);
    }
    step.sync_s = sync_seconds(scenario_);
    step.step_s = slowest + step.sync_s;
    step.bubble_share = bubble_share(step.slowest);
    for (const std::vector<double>& of_ga : forward) {
      step.microbatch_forward_s.insert(step.microbatch_forward_s.end(), of_ga.begin(), of_ga.end());
    }
    return step;
  }

 private:
  std::vector<GroupTimes> times_of(std::int32_t group) const {
    std::vector<GroupTimes> times(at(scenario_.ga()));
    for (std::size_t ga = 0; ga < times.size(); ++ga) {
      for (std::int32_t replica = group * group_; replica < (group + 1) * group_; ++replica) {
        const std::size_t slot = ga * at(scenario_.dp) + at(replica);
        times[ga].tokens = std::max(times[ga].tokens, tokens_of(slots_[slot]));
      }
      for (std::int32_t pool = group * group_ / pool_; pool < (group + 1) * group_ / pool_;
           ++pool) {
        for (const WorkerTimes& worker : attention_[ga][at(pool)].workers) {
          times[ga].attention_forward = std::max(times[ga].attention_forward, worker.forward);
          times[ga].attention_backward = std::max(times[ga].attention_backward, worker.backward);
        }
      }
    }
    return times;
  }

  // Of one microbatch's activations to the next stage, between nodes.
  double transfer_seconds() const {
    if (scenario_.pp == 1) return 0;
    const double bytes = kBf16Bytes * static_cast<double>(scenario_.model.hidden) *
                         static_cast<double>(scenario_.seq_tokens) / scenario_.plan.cp;
    return bytes / (scenario_.cluster.inter_node_gb_per_s * kGiga) +
           scenario_.cluster.inter_node_latency_us * kMicro;
  }

  const Scenario& scenario_;
  const std::vector<std::vector<PoolTimes>>& attention_;
  std::span<const PackedSequence> slots_;
  std::int32_t pool_ = 1;
  std::int32_t group_ = 1;
};

// Of a stage that always has its input.
std::vector<PipelineOperation> without_waits(std::int32_t stage, std::int32_t microbatches,
                                             const StageTimes& times) {
  std::vector<PipelineOperation> operations;
  operations.reserve(at(2 * microbatches));
  double now = 0;
  for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch) {
    operations.push_back({stage, microbatch, false, now, now + times.forward});
    now += times.forward;
    operations.push_back({stage, microbatch, true, now, now + times.backward});
    now += times.backward;
  }
  return operations;
}

// Of one layer on one of `tp` and `ep` GPUs that share it.
double layer_parameters(const Scenario& scenario, double tp, double ep) {
  const LinearShape& linear = scenario.linear;
  const auto projections = static_cast<double>(linear.projection_parameters(scenario.model));
  const auto expert = static_cast<double>(linear.expert_parameters(scenario.model));
  if (!linear.moe()) return (projections + expert) / tp;
  const double router = static_cast<double>(scenario.model.hidden) * linear.experts;
  return projections / tp + router + expert * linear.experts / ep;
}

double stage_parameters(const Scenario& scenario, double tp, double ep) {
  const auto embedding = static_cast<double>(scenario.linear.head_parameters(scenario.model));
  const double heads = scenario.pp == 1 ? 2 : 1;  // the only stage has the output head, too
  return layer_parameters(scenario, tp, ep) * stage_layers(scenario, 0) + heads * embedding / tp;
}

/// On one GPU.
double held_parameters(const Scenario& scenario) {
  return stage_parameters(scenario, scenario.plan.tp, scenario.ep);
}

}  // namespace

StepTimes step_times(const Environment& environment,
                     const std::vector<std::vector<PoolTimes>>& attention,
                     std::span<const PackedSequence> slots) {
  return Step(environment, attention, slots).run();
}

StepTimes least_step_times(const Scenario& scenario, const WorkerTimes& attention,
                           double sequence_tokens) {
  const std::vector<GroupTimes> groups(at(scenario.ga()),
                                       {attention.forward, attention.backward, sequence_tokens});
  StepTimes step;
  double busiest = 0;
  for (std::int32_t stage = 0; stage < scenario.pp; ++stage) {
    const StageTimes times = stage_times(scenario, stage, groups.front());
    step.slowest.push_back(without_waits(stage, scenario.ga(), times));
    busiest = std::max(busiest, step.slowest.back().back().end);
  }
  step.attention_s = attention_seconds(scenario, groups);
  step.sync_s = sync_seconds(scenario);
  step.step_s = busiest + step.sync_s;
  step.microbatch_forward_s.assign(groups.size(), stage_times(scenario, 0, groups.front()).forward);
  return step;
}

double linear_seconds(const Scenario& scenario, double sequence_tokens) {
  const auto parameters = static_cast<double>(scenario.linear.active_parameters(scenario.model));
  return 2 * parameters * sequence_tokens / scenario.plan.cp /
         (scenario.cluster.linear_tflops * kTera);
}

double expert_exchange_seconds(const Scenario& scenario, double sequence_tokens) {
  if (!scenario.linear.moe() || scenario.ep == 1) return 0;
  const Cluster& cluster = scenario.cluster;
  const double bytes = kBf16Bytes * static_cast<double>(scenario.model.hidden) *
                       scenario.linear.experts_per_token * sequence_tokens / scenario.plan.cp;
  const double peers = scenario.ep;
  const double near = std::min<double>(peers, cluster.gpus_per_node);
  const double by_nvlink = bytes * (near - 1) / peers / (cluster.nvlink_gb_per_s * kGiga) +
                           cluster.nvlink_latency_us * kMicro;
  const double by_network =
      peers > near ? bytes * (peers - near) / peers / (cluster.inter_node_gb_per_s * kGiga) +
                         cluster.inter_node_latency_us * kMicro
                   : 0;
  return 2 * std::max(by_nvlink, by_network);
}

double sync_seconds(const Scenario& scenario) {
  constexpr double kBytesPerParameter = 4 + kBf16Bytes;  // fp32 gradients, bf16 parameters
  const Cluster& cluster = scenario.cluster;
  const double ranks = scenario.stage_gpus();
  const double bytes = kBytesPerParameter * held_parameters(scenario) * (ranks - 1) / ranks;
  const double local = std::min<double>(ranks, cluster.gpus_per_node);
  const double by_nvlink = bytes / (cluster.nvlink_gb_per_s * kGiga);
  // Reduced inside the node first: each GPU takes its share of the node's bytes to the network.
  const double by_network =
      ranks > local ? bytes / local / (cluster.inter_node_gb_per_s * kGiga) : 0;
  return std::max(by_nvlink, by_network);
}

std::int32_t stage_layers(const Scenario& scenario, std::int32_t stage) {
  const std::int32_t more = scenario.model.layers % scenario.pp;
  return scenario.model.layers / scenario.pp + (stage < more ? 1 : 0);
}

double memory_bytes(const Scenario& scenario, std::int64_t sequence_tokens, double extra_bytes) {
  constexpr double kStateBytes = kBf16Bytes + 4;  // parameters, fp32 gradients
  constexpr double kOptimizerBytes = 12;          // fp32 parameters and two moments
  // Of a layer's activations per token and hidden unit where nothing is recomputed: about 34 bytes
  // of a dense layer in bf16 without attention's matrices.
  constexpr double kLayerBytes = 34;
  // The optimizer's state of the whole stage lies on its GPUs once, however they share parameters.
  const double state = held_parameters(scenario) * kStateBytes +
                       stage_parameters(scenario, 1, 1) * kOptimizerBytes / scenario.stage_gpus();
  const double in_flight = std::min(scenario.pp, scenario.ga());
  const double units = static_cast<double>(scenario.model.hidden) *
                       static_cast<double>(sequence_tokens) / scenario.plan.cp;
  const double layers = stage_layers(scenario, 0);
  const double activations = scenario.recompute
                                 ? units * (in_flight * layers * kBf16Bytes + kLayerBytes)
                                 : units * in_flight * layers * kLayerBytes;
  return state + activations + extra_bytes;
}

}  // namespace libra
