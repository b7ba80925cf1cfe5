// libra validate: does a saved plan keep every promise?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "libra/cli/command.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/plan_file.h"
#include "libra/cli/report.h"
#include "libra/plan/validate.h"

namespace libra::cli {
namespace {

struct Options {
  std::string plan;
  std::string json;
};

int run(const Options& options, const Console& console) {
  Report report(console, options.json);
  const std::vector<Violation> violations = violations_of_file(options.plan);
  Json json = {{"valid", violations.empty()}, {"violations", Json::array()}};
  if (violations.empty()) report.text() << "valid\n";
  for (const Violation& violation : violations) {
    report.text() << violation.rule << ": " << violation.detail << '\n';
    json["violations"].push_back({{"rule", violation.rule}, {"detail", violation.detail}});
  }
  report.finish(json);
  return violations.empty() ? kGood : kFailed;
}

}  // namespace

Command add_validate_command(CLI::App& parent) {
  auto* app = parent.add_subcommand("validate", "Check a saved plan, naming every violation");
  const auto options = std::make_shared<Options>();
  app->add_option("PLAN", options->plan, "A file that libra plan --save wrote")->required();
  add_json_option(*app, options->json);
  app->footer("Example:\n  libra validate pool0.plan");
  return {app, [options](const Console& console) { return run(*options, console); }};
}

}  // namespace libra::cli
