// The commands of the program. Each function adds one to the parser and gives what to do if it was
// named.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "libra/cli/console.h"

namespace libra::cli {

/// Exit codes of the program (docs/errors.md).
enum ExitCode : int {
  kGood = 0,
  kFailed = 1,    ///< a check failed, a plan is invalid, an exchange broke down
  kBadInput = 2,  ///< options or files
  kInternal = 3,  ///< a bug, or out of memory
};

struct Command {
  CLI::App* app = nullptr;
  std::function<int(const Console&)> run;  ///< the exit code; throws what went wrong
};

Command add_calibrate_command(CLI::App& parent);
Command add_corpus_command(CLI::App& parent);
Command add_paper_command(CLI::App& parent);
Command add_plan_command(CLI::App& parent);
Command add_replay_command(CLI::App& parent);
Command add_run_command(CLI::App& parent);
Command add_show_command(CLI::App& parent);
Command add_simulate_command(CLI::App& parent);
Command add_tune_command(CLI::App& parent);
Command add_validate_command(CLI::App& parent);

}  // namespace libra::cli
