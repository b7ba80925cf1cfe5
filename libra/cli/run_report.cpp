#include "libra/cli/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "libra/base/check.h"
#include "libra/base/index.h"
#include "libra/base/units.h"
#include "libra/cli/text_table.h"
#include "libra/plan/memory_plan.h"
#include "libra/plan/traffic.h"
#include "libra/plan/traffic_bound.h"

namespace libra::cli {
namespace {

struct Moved {
  std::int64_t sent = 0;
  std::int64_t received = 0;
};

bool is_forward(Phase phase) {
  return phase == Phase::kForwardDispatch || phase == Phase::kForwardReturn;
}

// Bytes of a worker's exchanges in one direction of the layer; agreeing on the plan is not counted.
Moved moved(const WorkerTrace& worker, bool forward) {
  Moved sum;
  for (const ExchangeRecord& record : worker.records) {
    if (record.tag.phase == Phase::kAgree || is_forward(record.tag.phase) != forward) continue;
    sum.sent += record.bytes_sent;
    sum.received += record.bytes_received;
  }
  return sum;
}

void require_planned(const PlacerRun& run, const TrafficReport& plan, bool forward) {
  const auto in = plan.in_by_worker();
  const auto out = plan.out_by_worker();
  for (std::size_t w = 0; w < run.result.workers.size(); ++w) {
    const Moved bytes = moved(run.result.workers[w], forward);
    LIBRA_CHECK(bytes.sent == out[w] && bytes.received == in[w],
                "worker {} under {} sent {} and received {} bytes, the plan says {} and {}", w,
                placer_name(run.placer), bytes.sent, bytes.received, out[w], in[w]);
  }
}

double slowest(const PlacerRun& run) {
  double most = 0;
  for (const WorkerTrace& worker : run.result.workers) most = std::max(most, worker.busy_seconds);
  return most;
}

double mean_seconds(const PlacerRun& run) {
  double sum = 0;
  for (const WorkerTrace& worker : run.result.workers) sum += worker.busy_seconds;
  return sum / static_cast<double>(run.result.workers.size());
}

double measured_max_over_mean(const PlacerRun& run) {
  const double mean = mean_seconds(run);
  return mean > 0 ? slowest(run) / mean : 1;
}

std::int64_t total(const PlacerRun& run, bool forward) {
  std::int64_t bytes = 0;
  for (const WorkerTrace& worker : run.result.workers) bytes += moved(worker, forward).sent;
  return bytes;
}

double mean_load(const PlacerRun& run) {
  const auto& load = run.plan.placement.load;
  return static_cast<double>(std::accumulate(load.begin(), load.end(), std::int64_t{0})) /
         static_cast<double>(load.size());
}

std::string pool_text(const RunSummary& summary) {
  std::size_t samples = 0;
  std::int64_t longest = 0;
  for (const PackedSequence& sequence : summary.sequences) {
    samples += sequence.sample_tokens.size();
    for (const std::int64_t tokens : sequence.sample_tokens) longest = std::max(longest, tokens);
  }
  return fmt::format(
      "run      pool {}: {} samples, the longest {} tokens; one layer, forward and backward\n"
      "scale    lengths x {}: sequences of {} tokens, blocks of {}; {}, {}, transport {}\n",
      summary.pool, samples, with_commas(longest), summary.scale.text(),
      with_commas(summary.runs.front().plan.sequences.front().tokens),
      summary.runs.front().plan.options.block_tokens, dtype_name(summary.dtype), summary.backend,
      summary.transport);
}

std::string workers_text(const PlacerRun& run, double longest_bar, const std::string& clock) {
  const double mean = mean_load(run);
  TextTable table({"worker", "load/mean", clock + " s", "sent", "received", ""});
  for (std::size_t w = 0; w < run.result.workers.size(); ++w) {
    const WorkerTrace& worker = run.result.workers[w];
    const double load = static_cast<double>(run.plan.placement.load[w]);
    const Moved forward = moved(worker, true);
    const Moved backward = moved(worker, false);
    table.add({fmt::format("{}", w), fmt::format("{:.3f}", mean > 0 ? load / mean : 0),
               fmt::format("{:.3f}", worker.busy_seconds),
               format_bytes(forward.sent + backward.sent),
               format_bytes(forward.received + backward.received),
               fmt::format("{:<32}", bar(load / longest_bar, 32))});
  }
  return fmt::format("\n{}\n{}", placer_name(run.placer), table.text());
}

std::string comparison_text(const RunSummary& summary) {
  TextTable table({"placer", "max/mean load", "max/mean " + summary.clock(),
                   "slowest " + summary.clock() + " s", "bytes forward", "backward", "memory"});
  for (const PlacerRun& run : summary.runs) {
    table.add({std::string(placer_name(run.placer)),
               fmt::format("{:.3f}", run.plan.placement.max_over_mean()),
               fmt::format("{:.3f}", measured_max_over_mean(run)),
               fmt::format("{:.3f}", slowest(run)), format_bytes(total(run, true)),
               format_bytes(total(run, false)), format_bytes(max_memory_bytes(run.plan))});
  }
  std::string text = "\n" + table.text();
  const double after = slowest(summary.runs.back());
  if (summary.runs.size() > 1 && after > 0) {
    text +=
        fmt::format("  slowest worker: {:.3f} s before, {:.3f} s after, {:.2f} x as fast\n",
                    slowest(summary.runs.front()), after, slowest(summary.runs.front()) / after);
  }
  return text;
}

std::string check_text(const RunSummary& summary) {
  if (!summary.allowed) return "";
  TextTable table({"largest error", "o", "lse", "dq", "dk", "dv"});
  const auto add = [&table](const std::string& name, const OutputErrors& errors) {
    std::vector<std::string> cells = {name};
    for (const double error : errors.largest) cells.push_back(fmt::format("{:.1e}", error));
    table.add(std::move(cells));
  };
  for (const PlacerRun& run : summary.runs) {
    if (run.errors) add(std::string(placer_name(run.placer)), *run.errors);
  }
  add("allowed", *summary.allowed);
  return fmt::format("\n{}  check: {}\n", table.text(),
                     summary.ok() ? "ok, equal to plain attention" : "FAILED");
}

Json to_json(const OutputErrors& errors) {
  Json json;
  for (std::size_t i = 0; i < errors.largest.size(); ++i) {
    json[std::string(OutputErrors::kNames[i])] = errors.largest[i];
  }
  return json;
}

Json busy_seconds(const PlacerRun& run) {
  Json json = Json::array();
  for (const WorkerTrace& worker : run.result.workers) json.push_back(worker.busy_seconds);
  return json;
}

Json to_json(const PlacerRun& run, const std::string& seconds) {
  const PlanOptions& options = run.plan.options;
  Json json = {{"head_shards", options.head_shards},
               {"chunks", options.chunks},
               {"block", options.block_tokens},
               {"fetch", fetch_name(options.fetch)},
               {"backward", backward_name(options.backward)},
               {"load", run.plan.placement.load},
               {"max_over_mean", run.plan.placement.max_over_mean()},
               {"tiles_moved", run.plan.tiles_moved()},
               {seconds, busy_seconds(run)},
               {"measured_max_over_mean", measured_max_over_mean(run)},
               {"bytes_forward", total(run, true)},
               {"bytes_over_bound", bytes_over_bound(run.plan)},
               {"bytes_backward", total(run, false)},
               {"memory_bytes", max_memory_bytes(run.plan)},
               {"fingerprint", fmt::format("{:016x}", plan_fingerprint(run.plan))}};
  if (run.errors) json["max_abs_error"] = to_json(*run.errors);
  return json;
}

OutputErrors worst(const std::vector<PlacerRun>& runs) {
  OutputErrors worst;
  for (const PlacerRun& run : runs) {
    for (std::size_t i = 0; i < worst.largest.size(); ++i) {
      worst.largest[i] = std::max(worst.largest[i], run.errors->largest[i]);
    }
  }
  return worst;
}

}  // namespace

bool RunSummary::ok() const {
  return std::all_of(runs.begin(), runs.end(), [this](const PlacerRun& run) {
    return !allowed || (run.errors && within(*run.errors, *allowed));
  });
}

void require_planned_bytes(const PlacerRun& run) {
  require_planned(run, forward_traffic(run.plan), true);
  require_planned(run, backward_traffic(run.plan), false);
}

std::string run_text(const RunSummary& summary) {
  double longest_bar = 1;
  for (const PlacerRun& run : summary.runs) {
    for (const std::int64_t load : run.plan.placement.load) {
      longest_bar = std::max(longest_bar, static_cast<double>(load));
    }
  }
  std::string text = pool_text(summary);
  for (const PlacerPlan& placer : summary.skipped) {
    text +=
        fmt::format("note     {} is left out: {}\n", placer_name(placer.placer), placer.skipped);
  }
  for (const PlacerRun& run : summary.runs) text += workers_text(run, longest_bar, summary.clock());
  return text + comparison_text(summary) + check_text(summary);
}

Json run_json(const Job& job, const RunSummary& summary) {
  Json json = job_json(job);
  json["ok"] = summary.ok();
  json["checked"] = summary.allowed.has_value();
  json["backend"] = summary.backend;
  json["transport"] = summary.transport;
  json["dtype"] = dtype_name(summary.dtype);
  json["scale_lengths"] = summary.scale.text();
  json["which_pool"] = summary.pool;
  json["scaled_tokens"] = summary.runs.front().plan.sequences.front().tokens;
  if (summary.allowed) {
    json["max_abs_error"] = to_json(worst(summary.runs));
    json["allowed_error"] = to_json(*summary.allowed);
  }
  const std::string seconds = summary.clock() == "CPU" ? "cpu_seconds" : "gpu_seconds";
  json[seconds] = {{"before", busy_seconds(summary.runs.front())},
                   {"after", busy_seconds(summary.runs.back())}};
  for (const PlacerPlan& placer : summary.skipped) {
    json["placers"][std::string(placer_name(placer.placer))] = {{"skipped", placer.skipped}};
  }
  for (const PlacerRun& run : summary.runs) {
    json["placers"][std::string(placer_name(run.placer))] = to_json(run, seconds);
  }
  return json;
}

}  // namespace libra::cli
