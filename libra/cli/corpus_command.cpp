// libra corpus: statistics of a corpus, and how it packs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "libra/base/units.h"
#include "libra/base/version.h"
#include "libra/cli/command.h"
#include "libra/cli/corpus_options.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/text_table.h"
#include "libra/corpus/statistics.h"

namespace libra::cli {
namespace {

struct Options {
  CorpusOptions corpus;
  std::string json;
};

PackingReport pack_all(const std::vector<std::int64_t>& lengths, const PackingOptions& options) {
  check_oversize(lengths, options);
  DocumentPacker packer(options);
  const auto drain = [&packer] {
    while (packer.take()) {
    }
  };
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    packer.add(static_cast<std::int64_t>(i), lengths[i]);
    drain();
  }
  packer.finish();
  drain();
  return packer.report();
}

Json to_json(const CorpusStatistics& s) {
  Json json = {{"documents", s.documents},
               {"tokens", s.tokens},
               {"min", s.min},
               {"median", s.median},
               {"mean", s.mean},
               {"p90", s.p90},
               {"p99", s.p99},
               {"p999", s.p999},
               {"max", s.max},
               {"share_above_32k", s.share_above_32k},
               {"share_above_256k", s.share_above_256k},
               {"histogram", Json::array()}};
  for (const LengthBucket& bucket : s.histogram) {
    json["histogram"].push_back({{"begin", bucket.begin},
                                 {"end", bucket.end},
                                 {"documents", bucket.documents},
                                 {"tokens", bucket.tokens},
                                 {"attention_share", bucket.attention_share}});
  }
  return json;
}

std::string histogram_text(const CorpusStatistics& s) {
  TextTable table({"tokens from", "documents", "tokens %", "attention %", ""});
  const double all = std::max(1.0, static_cast<double>(s.tokens));
  for (const LengthBucket& bucket : s.histogram) {
    const double share = static_cast<double>(bucket.tokens) / all;
    table.add({format_size(bucket.begin), with_commas(bucket.documents),
               fmt::format("{:.2f}", 100 * share),
               fmt::format("{:.2f}", 100 * bucket.attention_share),
               fmt::format("{:<40}", bar(bucket.attention_share, 40))});
  }
  return table.text();
}

std::string statistics_text(const std::string& name, const CorpusStatistics& s) {
  return fmt::format(
      "{}: {} documents, {} tokens\n"
      "  min {}  median {}  mean {:.1f}  p90 {}  p99 {}  p99.9 {}  max {}\n"
      "  tokens in documents above 32K: {:.2f}%, above 256K: {:.2f}%\n\n",
      name, with_commas(s.documents), with_commas(s.tokens), with_commas(s.min),
      with_commas(s.median), s.mean, with_commas(s.p90), with_commas(s.p99), with_commas(s.p999),
      with_commas(s.max), 100 * s.share_above_32k, 100 * s.share_above_256k);
}

int run(const Options& options, const Console& console) {
  const PackingOptions& packing = options.corpus.packing;
  if (packing.tokens != 0) check_packing_options(packing);
  Report report(console, options.json);
  const Corpus corpus = read(options.corpus);
  const CorpusStatistics statistics = corpus_statistics(corpus.lengths);
  Json json = {{"version", kVersion}, {"name", corpus.name}};
  json.update(to_json(statistics));
  std::string packed_text;
  if (packing.tokens != 0) {
    const PackingReport packed = pack_all(corpus.lengths, packing);
    json["packing_report"] = libra::cli::to_json(packed);
    packed_text = fmt::format("\npacking: {}\n", describe(packed, packing));
  }
  report.text() << statistics_text(corpus.name, statistics) << histogram_text(statistics)
                << packed_text;
  report.finish(json);
  return kGood;
}

}  // namespace

Command add_corpus_command(CLI::App& parent) {
  auto* app = parent.add_subcommand("corpus", "Statistics of a corpus of sample lengths");
  const auto options = std::make_shared<Options>();
  app->add_option("PATH", options->corpus.corpus,
                  "A .npy, .idx, .jsonl or text file of sample lengths, or synthetic:paper-256k, "
                  "synthetic:paper-1m")
      ->required();
  add_packing_options(*app, options->corpus);
  add_reading_options(*app, options->corpus);
  add_json_option(*app, options->json);
  app->footer("Example:\n  libra corpus data/mix.npy --seq-len 256K --oversize truncate");
  return {app, [options](const Console& console) { return run(*options, console); }};
}

}  // namespace libra::cli
