#include "libra/cli/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <sstream>
#include <thread>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/base/version.h"
#include "libra/cli/mpi_job.h"

namespace libra::cli {
namespace {

struct Outcome {
  int code = kGood;
  std::string error;  // empty: none
};

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

// What the parser asks for by throwing: help, the version, or an error.
Outcome parser_outcome(const CLI::App& app, const CLI::ParseError& error, std::ostream& out) {
  if (error.get_name() == "CallForHelp") {
    out << app.help();
    return {};
  }
  if (error.get_name() == "CallForVersion") {
    out << error.what() << '\n';
    return {};
  }
  const auto chosen = app.get_subcommands();
  const std::string command = chosen.empty() ? "" : fmt::format(" {}", chosen.front()->get_name());
  return {kBadInput, fmt::format("{}: see libra{} --help", error.what(), command)};
}

// The parser would only say that a command is missing.
void check_command(const std::vector<Command>& commands,
                   const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments.front().substr(0, 1) == "-") return;
  std::string names;
  for (const Command& command : commands) {
    if (!arguments.empty() && arguments.front() == command.app->get_name()) return;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", command.app->get_name());
  }
  throw ConfigError(fmt::format(
      "{}: use one of {}, or --help",
      arguments.empty() ? "a command is missing" : fmt::format("no command '{}'", arguments[0]),
      names));
}

int dispatch(const std::vector<Command>& commands, const Console& console) {
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run(console);
  }
  return kGood;
}

Outcome execute(const std::vector<std::string>& arguments, const Console& console) {
  CLI::App app("Balances attention work in long-context LLM training.", "libra");
  app.set_version_flag("--version", fmt::format("libra {}", kVersion));
  app.require_subcommand(1);
  app.footer("libra COMMAND --help describes a command's options.");
  const std::vector<Command> commands = {add_corpus_command(app),    add_plan_command(app),
                                         add_simulate_command(app),  add_tune_command(app),
                                         add_paper_command(app),     add_run_command(app),
                                         add_calibrate_command(app), add_replay_command(app),
                                         add_show_command(app),      add_validate_command(app)};
  check_command(commands, arguments);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return parser_outcome(app, error, console.out);
  }
  return {dispatch(commands, console), {}};
}

// What an exception means to the caller of the program.
Outcome guarded(const std::function<Outcome()>& action) {
  try {
    return action();
  } catch (const TransportError& error) {
    return {kFailed, error.what()};
  } catch (const Error& error) {
    return {kBadInput, error.what()};
  } catch (const std::bad_alloc&) {
    return {kInternal, "out of memory: use a smaller window, pool or scale"};
  } catch (const std::exception& error) {
    return {kInternal, fmt::format("internal error, please report it: {}", error.what())};
  }
}

Outcome run_command_line(const std::vector<std::string>& arguments, const Console& console) {
  return guarded([&] {
    Outcome outcome = execute(arguments, console);
    console.out.flush();
    if (!console.out) throw InputError("standard output", "cannot be written to");
    return outcome;
  });
}

void print_error(const Outcome& outcome, const Console& console) {
  if (outcome.error.empty()) return;
  console.err << "libra: error: " << one_line(outcome.error) << '\n' << std::flush;
}

// Whether MPI has to be started, which is before the options are read.
bool asks_for_mpi(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "run") return false;
  bool mpi = false;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "--help" || arguments[i] == "-h") return false;
    mpi = mpi || arguments[i] == "--transport=mpi" ||
          (arguments[i] == "mpi" && arguments[i - 1] == "--transport");
  }
  return mpi;
}

// What one rank finds wrong, mostly all do. Rank 0 says it and ends the job; the others speak up
// only if they are still there after a while.
int end_with(const Outcome& outcome, MpiJob& job, const Console& console) {
  if (job.rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(2));
  print_error(outcome, console);
  if (job.size() > 1) job.end(outcome.code);  // MPI has much to say about that
  return outcome.code;
}

int run_as_rank(const std::vector<std::string>& arguments, const Console& console) {
  std::unique_ptr<MpiJob> job;
  const Outcome started = guarded([&job] {
    job = start_mpi_job();
    return Outcome{};
  });
  if (job == nullptr) {
    print_error(started, console);
    return started.code;
  }
  std::ostringstream unread;
  const bool first = job->rank() == 0;
  const Console own{first ? console.out : unread, first ? console.err : unread,
                    first && console.err_is_terminal, job.get()};
  const Outcome outcome = run_command_line(arguments, own);
  return outcome.error.empty() ? outcome.code : end_with(outcome, *job, console);
}

}  // namespace

int run_cli(const std::vector<std::string>& arguments, const Console& console) {
  if (console.mpi == nullptr && asks_for_mpi(arguments)) return run_as_rank(arguments, console);
  const Outcome outcome = run_command_line(arguments, console);
  print_error(outcome, console);
  return outcome.code;
}

}  // namespace libra::cli
