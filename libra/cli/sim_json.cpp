#include "libra/cli/sim_json.h"

#include "libra/corpus/statistics.h"

namespace libra::cli {
namespace {

constexpr std::size_t kShownOperations = 400;

Json to_json(const MeanMax& figure) {
  return {{"mean_ms", figure.mean_ms}, {"max_ms", figure.max_ms}};
}

Json to_json(const LinkBytes& bytes) {
  return {{"nvlink", bytes.nvlink}, {"inter_node", bytes.inter_node}};
}

Json or_null(double value) { return value > 0 ? Json(value) : Json(); }

Json timeline_json(const std::vector<std::vector<PipelineOperation>>& schedule) {
  Json json = Json::array();
  for (const auto& stage : schedule) {
    for (const PipelineOperation& operation : stage) {
      if (json.size() == kShownOperations) return json;
      json.push_back({{"stage", operation.stage},
                      {"microbatch", operation.microbatch},
                      {"pass", operation.backward ? "backward" : "forward"},
                      {"begin_s", operation.begin},
                      {"end_s", operation.end}});
    }
  }
  return json;
}

Json to_json(const MethodFigures& f) {
  if (!f.skipped.empty()) return {{"skipped", f.skipped}};
  return {{"what", f.method->what},
          {"step_equivalent", f.method->step_equivalent},
          {"straggler_mean_ms", f.straggler.mean_ms},
          {"straggler_max_ms", f.straggler.max_ms},
          {"speedup_mean_vs_ulysses", or_null(f.speedup_mean)},
          {"speedup_max_vs_ulysses", or_null(f.speedup_max)},
          {"tokens_per_gpu_s", f.tokens_per_gpu_s},
          {"exposed_comm_ms", f.exposed_comm_ms},
          {"bytes_total", f.forward_bytes.total() + f.backward_bytes.total()},
          {"forward", to_json(f.forward)},
          {"backward", to_json(f.backward)},
          {"straggler_compute", to_json(f.straggler_compute)},
          {"max_over_mean", f.max_over_mean},
          {"bytes_forward", to_json(f.forward_bytes)},
          {"bytes_backward", to_json(f.backward_bytes)},
          {"step_s", f.step_s},
          {"step_s_deviation", f.step_s_deviation},
          {"step_seconds", f.step_seconds},
          {"tokens_per_step", f.tokens},
          {"work_share", f.work_share},
          {"scaling_efficiency", f.efficiency},
          {"bubble_share", f.bubble_share},
          {"attention_share", f.attention_share},
          {"sync_s", f.sync_s},
          {"memory_bytes", f.memory_bytes},
          {"extra_memory_bytes", f.extra_memory_bytes},
          {"plan_us", f.plan_us},
          {"microbatch_forward_ms",
           {{"min", f.microbatch_min_ms},
            {"mean", f.microbatch_mean_ms},
            {"max", f.microbatch_max_ms}}},
          {"worker_ms", f.worker_ms},
          {"timeline", timeline_json(f.timeline)}};
}

}  // namespace

Json simulation_json(const Scenario& scenario, const SimOptions& options, const Corpus& corpus,
                     const SimWindows& windows, const Simulation& simulation) {
  Json json = scenario_json(scenario, options, corpus, windows);
  json["pool"] = scenario.pool;
  json["block"] = scenario.plan.block_tokens;
  json["head_shards"] = scenario.plan.head_shards;
  json["chunks"] = scenario.plan.chunks;
  json["tau"] = scenario.plan.tau_ppm / 1e6;
  json["home"] = home_name(scenario.plan.home);
  json["lengths"] = Json::array();
  for (const LengthBucket& bucket : corpus_statistics(corpus.lengths).histogram) {
    json["lengths"].push_back({{"begin", bucket.begin},
                               {"documents", bucket.documents},
                               {"tokens", bucket.tokens},
                               {"attention_share", bucket.attention_share}});
  }
  for (const MethodFigures& figures : simulation.methods) {
    json["methods"][std::string(figures.method->name)] = to_json(figures);
  }
  return json;
}

}  // namespace libra::cli
