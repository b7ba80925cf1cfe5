// libra run: executes a pool's plans, forward and backward of one layer, and compares them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/cli/command.h"
#include "libra/cli/dense_check.h"
#include "libra/cli/job_environment.h"
#include "libra/cli/mpi_job.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/planned_timeline.h"
#include "libra/cli/run_report.h"
#include "libra/plan/pool_assignment.h"
#include "libra/runtime/trace.h"

namespace libra::cli {
namespace {

constexpr const char* kExample =
    "Examples:\n"
    "  libra run --corpus data/mix.npy --seq-len 256K --oversize truncate --gbs 16 --dp 4 --cp 2 "
    "\\\n"
    "    --pool 2 --dtype fp32 --scale-lengths 1/128 --check --trace trace.json\n"
    "  mpirun -n 4 libra run --transport mpi ...        (P x CP ranks)";

struct Options {
  JobOptions job;
  std::string backend = "reference";
  std::string transport = "inproc";
  std::optional<DType> dtype;  // none: the backend's
  LengthScale scale{1, 128};
  std::optional<std::int32_t> which_pool;  // none: that of the heaviest sequence
  bool check = false;
  std::string trace;
  double deadline_seconds = 300;
};

struct Pool {
  std::int32_t index = 0;
  std::vector<PackedSequence> sequences;  // not scaled
};

Pool choose_pool(Job& job, const std::optional<std::int32_t>& wanted) {
  const JobWindow window = job.next();
  const std::vector<std::int64_t> costs = job.costs(window);
  const PoolAssignment pools = job.group(costs);
  if (wanted && *wanted >= pools.pools()) {
    throw ConfigError(
        fmt::format("--which-pool {}: the window has pools 0 to {}", *wanted, pools.pools() - 1));
  }
  const auto heaviest = std::max_element(costs.begin(), costs.end()) - costs.begin();
  const auto place = std::find(pools.order.begin(), pools.order.end(), heaviest);
  const auto index = static_cast<std::int32_t>(place - pools.order.begin()) / pools.pool_size;
  const std::int32_t pool = wanted.value_or(index);
  return {pool, sequences_of(window, pools.pool(pool))};
}

PoolPlan make_scaled_plan(const Job& job, const Options& options, PlanOptions plan,
                          std::vector<PackedSequence> scaled) {
  plan.storage = *options.dtype;
  plan.block_tokens = options.scale(plan.block_tokens);
  plan.return_lse = options.check;  // so that it can be compared
  return job.plan(plan, std::move(scaled));
}

std::unique_ptr<Executor> make_executor(const Options& options, std::int32_t workers,
                                        const Console& console) {
  LIBRA_CHECK((console.mpi != nullptr) == (options.transport == "mpi"),
              "transport {}, but the process is {} of an MPI job", options.transport,
              console.mpi != nullptr ? "a rank" : "no rank");
  const std::chrono::milliseconds deadline(std::llround(options.deadline_seconds * 1000));
  if (console.mpi != nullptr) return console.mpi->make_executor(workers, deadline);
  if (options.backend == "cudnn") return make_gpu_executor(options.transport, workers, deadline);
  return make_inproc_executor(deadline);
}

// On GPUs, what was planned beside what was measured; a CPU has no profile to plan with.
std::string trace_text(const Job& job, const std::string& backend,
                       const std::vector<PlacerRun>& runs) {
  std::optional<Environment> environment;
  if (backend == "cudnn") environment.emplace(environment_of(job, "hgx-h200"));
  std::vector<TraceProcess> processes;
  processes.reserve(2 * runs.size());
  for (const PlacerRun& run : runs) {
    const std::string name(placer_name(run.placer));
    if (environment) {
      processes.push_back(
          planned_timeline(name + ", planned", plan_schedule(*environment, run.plan, {})));
    }
    processes.push_back(measured_timeline(name, run.result.workers));
  }
  return trace_to_json(processes);
}

RunSummary summarise(const Job& job, const Options& options, const Pool& pool) {
  RunSummary summary;
  summary.backend = options.backend;
  summary.transport = options.transport;
  summary.dtype = *options.dtype;
  summary.scale = options.scale;
  summary.pool = pool.index;
  summary.sequences = pool.sequences;
  for (const PlacerPlan& placer : job.placers()) {
    if (!placer.skipped.empty()) summary.skipped.push_back(placer);
  }
  return summary;
}

void execute_placers(RunSummary& summary, const Job& job, const Options& options,
                     Executor& executor, const Console& console) {
  const auto scaled = scale_sequences(summary.sequences, options.scale);
  for (const PlacerPlan& placer : job.placers()) {
    if (!placer.skipped.empty()) continue;
    summary.runs.push_back(
        {placer.placer, make_scaled_plan(job, options, placer.options, scaled), {}, {}});
  }
  const PoolPlan& first = summary.runs.front().plan;
  const auto inputs = random_pool_inputs(first, job.options().corpus.seed);
  const double softmax_scale = 1 / std::sqrt(static_cast<double>(first.options.shape.head_dim));
  Progress progress(console, "executing",
                    static_cast<std::int64_t>(summary.runs.size()) + (options.check ? 1 : 0));
  for (PlacerRun& run : summary.runs) {
    run.result = executor.execute(run.plan, inputs, softmax_scale);
    if (executor.reports()) require_planned_bytes(run);
    progress.advance();
  }
  if (!options.check || !executor.reports()) return;
  ReferenceAttention backend;
  DenseCheck check(backend, scaled, inputs, softmax_scale);
  summary.allowed = check.allowed();
  for (PlacerRun& run : summary.runs) run.errors = check.errors(run.result.sequences);
}

int run(const Options& options, const Console& console) {
  const bool reporting = console.mpi == nullptr || console.mpi->rank() == 0;
  Report report(console, reporting ? options.job.json : "");
  if (reporting) report.add_file(options.trace);
  Job job(options.job, {PlacerKind::kNone, PlacerKind::kBalanced});
  const auto executor = make_executor(options, job.workers(), console);
  RunSummary summary = summarise(job, options, choose_pool(job, options.which_pool));
  execute_placers(summary, job, options, *executor, console);
  if (!reporting) return kGood;
  report.text() << describe(job) << run_text(summary);
  if (!options.trace.empty()) {
    report.write(options.trace, trace_text(job, options.backend, summary.runs));
    report.text() << fmt::format("timeline: {} (open it in Perfetto)\n", options.trace);
  }
  report.finish(run_json(job, summary));
  return summary.ok() ? kGood : kFailed;
}

std::string parse_backend(const std::string& text) {
  if (text == "reference" || text == "cudnn") return text;
  throw ConfigError(fmt::format("no attention backend '{}': reference and cudnn are there", text));
}

std::string parse_transport(const std::string& text) {
  for (const char* name : {"inproc", "mpi", "peer", "nccl"}) {
    if (text == name) return text;
  }
  throw ConfigError(fmt::format("no transport '{}': inproc, mpi, peer and nccl are there", text));
}

DType parse_run_dtype(const std::string& text) {
  if (text == "fp64" || text == "fp32" || text == "bf16") return parse_dtype(text);
  throw ConfigError(
      fmt::format("'{}' is not a number format of a run: use fp64, fp32 or bf16", text));
}

// Which of them fit each other; the format follows from the backend unless it was given.
void settle_backend(Options& options) {
  const bool gpu = options.backend == "cudnn";
  const bool host_only = options.transport == "mpi";
  const bool gpu_only = options.transport == "peer" || options.transport == "nccl";
  if ((gpu && host_only) || (!gpu && gpu_only)) {
    throw ConfigError(fmt::format(
        "--transport {} does not go with --backend {}: reference takes inproc and mpi, cudnn takes "
        "inproc, peer and nccl",
        options.transport, options.backend));
  }
  if (!options.dtype) options.dtype = gpu ? DType::kBf16 : DType::kFp32;
  if (gpu && *options.dtype != DType::kBf16) {
    throw ConfigError(fmt::format("--dtype {} does not go with --backend cudnn: it runs bf16",
                                  dtype_name(*options.dtype)));
  }
}

double parse_deadline(const std::string& text) {
  const double seconds = parse_decimal(text, 1e6);
  if (seconds < 0.001) throw ConfigError("the deadline must be at least 0.001 seconds");
  return seconds;
}

void add_execution_options(CLI::App& app, Options& options) {
  const char* const group = "Execution";
  add_parsed(
      app, "--backend", [&](const std::string& t) { options.backend = parse_backend(t); },
      "reference: attention on the CPU | cudnn: on NVIDIA GPUs")
      ->type_name("NAME")
      ->default_str("reference")
      ->group(group);
  add_parsed(
      app, "--transport", [&](const std::string& t) { options.transport = parse_transport(t); },
      "inproc: workers are threads | mpi: workers are ranks, under mpirun | with cudnn: inproc "
      "(all "
      "on one GPU), peer (copy engines) or nccl between GPUs")
      ->type_name("NAME")
      ->default_str("inproc")
      ->group(group);
  add_parsed(
      app, "--dtype", [&](const std::string& t) { options.dtype = parse_run_dtype(t); },
      "Storage: fp64 | fp32 | bf16 (cudnn: always bf16)")
      ->type_name("NAME")
      ->default_str("fp32")
      ->group(group);
  add_parsed(
      app, "--scale-lengths", [&](const std::string& t) { options.scale = parse_length_scale(t); },
      "Samples, sequences and blocks are this much shorter: a/b, or b for 1/b")
      ->type_name("A/B")
      ->default_str("1/128")
      ->group(group);
  add_parsed(
      app, "--deadline",
      [&](const std::string& t) { options.deadline_seconds = parse_deadline(t); },
      "Longest time that a worker waits for another")
      ->type_name("SECONDS")
      ->default_str("300")
      ->group(group);
}

}  // namespace

Command add_run_command(CLI::App& parent) {
  auto* app =
      parent.add_subcommand("run", "Execute one pool of the first window, forward and backward");
  const auto options = std::make_shared<Options>();
  add_job_options(*app, options->job);
  app->get_option("--placer")->default_str("none,balanced");
  add_execution_options(*app, *options);
  add_parsed(
      *app, "--which-pool",
      [options](const std::string& text) { options->which_pool = parse_count(text); },
      "The window's pool to execute (default: that of the heaviest sequence)")
      ->type_name("K")
      ->group("Execution");
  app->add_flag("--check", options->check, "Compare all outputs with plain attention")
      ->group("Execution");
  app->add_option("--trace", options->trace, "Write a timeline (Chrome trace JSON, for Perfetto)")
      ->type_name("FILE")
      ->group("Execution");
  app->footer(kExample);
  return {app, [options](const Console& console) {
            settle_backend(*options);
            return run(*options, console);
          }};
}

}  // namespace libra::cli
