// libra paper: the paper's figures beside ours, with the ratio.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "libra/base/error.h"
#include "libra/base/units.h"
#include "libra/base/version.h"
#include "libra/cli/command.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/report.h"
#include "libra/cli/text_table.h"
#include "libra/sim/paper.h"

namespace libra::cli {
namespace {

constexpr const char* kExample =
    "Example:\n"
    "  libra paper --figures 12,15,16 --cluster supernode-64 --steps 20";

struct Options {
  std::vector<const PaperFigure*> figures;
  // The paper's machines form supernodes; with 64 GPUs in one, as its Figure 15 has it, a pool of
  // 64 workers stays inside.
  std::string cluster = "supernode-64";
  std::int32_t steps = 20;
  std::int32_t threads = 0;
  std::uint64_t seed = 0;
  std::string json;
};

std::vector<const PaperFigure*> parse_figures(const std::string& text) {
  std::vector<const PaperFigure*> figures;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const PaperFigure* const figure = &find_paper_figure(text.substr(begin, end - begin));
    if (std::find(figures.begin(), figures.end(), figure) != figures.end()) {
      throw ConfigError(fmt::format("'{}' is there twice: name each once", figure->name));
    }
    figures.push_back(figure);
    begin = end + 1;
  }
  return figures;
}

std::string number(const std::optional<double>& value) {
  if (!value) return "";
  return fmt::format("{:.{}f}", *value, *value >= 100 ? 0 : *value >= 0.1 ? 2 : 4);
}

std::string ratio(const PaperRow& row) {
  const bool there = row.paper && row.faithful && *row.paper > 0;
  return there ? fmt::format("{:.2f}", *row.faithful / *row.paper) : "";
}

std::string label(const PaperRow& row) {
  if (!row.work_share) return row.what;
  return fmt::format("{} ({:.0f}% of the work)", row.what, 100 * *row.work_share);
}

std::string text_of(const PaperFigure& figure, const PaperResult& result) {
  TextTable table({"", "paper", "ours, faithful", "ratio", "as shipped"});
  for (const PaperRow& row : result.rows) {
    table.add(
        {label(row), number(row.paper), number(row.faithful), ratio(row), number(row.shipped)});
  }
  const bool section = figure.name == "4.2" || figure.name == "5";
  std::string text = fmt::format("{} {}: {} ({})\n", section ? "Section" : "Figure", figure.name,
                                 figure.title, result.unit);
  text += table.text();
  if (!result.assumptions.empty()) text += fmt::format("  Assumed: {}.\n", result.assumptions);
  if (!figure.why.empty()) text += fmt::format("  {}\n", figure.why);
  return text + '\n';
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json to_json(const PaperFigure& figure, const PaperResult& result) {
  Json json = {{"title", figure.title},
               {"unit", result.unit},
               {"assumptions", result.assumptions},
               {"why", figure.why},
               {"rows", Json::array()}};
  for (const PaperRow& row : result.rows) {
    json["rows"].push_back({{"what", row.what},
                            {"paper", or_null(row.paper)},
                            {"faithful", or_null(row.faithful)},
                            {"shipped", or_null(row.shipped)},
                            {"work_share", or_null(row.work_share)}});
  }
  return json;
}

std::vector<const PaperFigure*> all_figures() {
  std::vector<const PaperFigure*> figures;
  figures.reserve(paper_figures().size());
  for (const PaperFigure& figure : paper_figures()) figures.push_back(&figure);
  return figures;
}

int run(const Options& options, const Console& console) {
  if (options.steps < 1) throw ConfigError("--steps is 0: it must be at least 1");
  Report report(console, options.json);
  PaperOptions paper;
  paper.cluster = load_cluster(options.cluster);
  paper.steps = options.steps;
  paper.seed = options.seed;
  paper.threads = options.threads;
  const std::vector<const PaperFigure*> figures =
      options.figures.empty() ? all_figures() : options.figures;
  Json json = {{"version", kVersion},
               {"cluster", paper.cluster.name},
               {"steps", paper.steps},
               {"seed", paper.seed}};
  Progress progress(console, "figure", static_cast<std::int64_t>(figures.size()));
  for (const PaperFigure* const figure : figures) {
    const PaperResult result = figure->run(paper);
    report.text() << text_of(*figure, result);
    json["figures"][std::string(figure->name)] = to_json(*figure, result);
    progress.advance();
  }
  report.finish(json);
  return kGood;
}

}  // namespace

Command add_paper_command(CLI::App& parent) {
  auto* app = parent.add_subcommand("paper", "The paper's figures beside ours");
  const auto options = std::make_shared<Options>();
  add_parsed(
      *app, "--figures",
      [options](const std::string& text) { options->figures = parse_figures(text); },
      "Comma-separated figures and sections: 2 | 4 | 8 | 4.2 | 5 | 12 | 15 | 16 | 13 | 11 | 14 "
      "(default: all)")
      ->type_name("NAMES");
  app->add_option("--cluster", options->cluster, "A preset or a JSON file")
      ->type_name("NAME|FILE")
      ->capture_default_str();
  add_count(*app, "--steps", options->steps, "Windows to simulate");
  add_count(*app, "--threads", options->threads, "Threads (default: one per core)");
  add_parsed(
      *app, "--seed",
      [options](const std::string& text) {
        options->seed = static_cast<std::uint64_t>(parse_size(text));
      },
      "Seed of the lengths and of their order")
      ->type_name("N")
      ->default_str("0");
  add_json_option(*app, options->json);
  app->footer(kExample);
  return {app, [options](const Console& console) { return run(*options, console); }};
}

}  // namespace libra::cli
