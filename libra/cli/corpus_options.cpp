#include "libra/cli/corpus_options.h"

#include <fmt/format.h>

#include "libra/base/error.h"
#include "libra/base/units.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/text_table.h"

namespace libra::cli {

void add_reading_options(CLI::App& app, CorpusOptions& options) {
  add_parsed(
      app, "--idx-unit",
      [&](const std::string& text) { options.read.idx_unit = parse_idx_unit(text); },
      "What a Megatron .idx file's samples are: documents | sequences")
      ->type_name("UNIT")
      ->default_str("documents")
      ->group("Corpus");
  add_size(app, "--synthetic-documents", options.read.synthetic_documents,
           "Documents that a synthetic corpus has")
      ->group("Corpus");
  add_parsed(
      app, "--seed",
      [&](const std::string& text) { options.seed = static_cast<std::uint64_t>(parse_size(text)); },
      "Seed of synthetic lengths, of the reading order and of inputs")
      ->type_name("N")
      ->default_str("0")
      ->group("Corpus");
}

CLI::Option* add_packing_options(CLI::App& app, CorpusOptions& options) {
  add_parsed(
      app, "--packing",
      [&](const std::string& text) { options.packing.packing = parse_packing(text); },
      "first-fit | best-fit-decreasing | concat")
      ->type_name("NAME")
      ->default_str("first-fit")
      ->group("Corpus");
  add_parsed(
      app, "--oversize",
      [&](const std::string& text) { options.packing.oversize = parse_oversize(text); },
      "Samples longer than a sequence: error | truncate | split | drop")
      ->type_name("POLICY")
      ->default_str("error")
      ->group("Corpus");
  return add_size(app, "--seq-len", options.packing.tokens,
                  "Tokens of a packed sequence, e.g. 256K")
      ->group("Corpus");
}

void add_order_option(CLI::App& app, CorpusOptions& options) {
  add_parsed(
      app, "--order", [&](const std::string& text) { options.order = parse_order(text); },
      "Order of reading: shuffled | file-order-once | file-order")
      ->type_name("NAME")
      ->default_str("shuffled")
      ->group("Corpus");
}

void add_window_corpus_options(CLI::App& app, CorpusOptions& options) {
  app.add_option("--corpus", options.corpus,
                 "A .npy, .idx, .jsonl or text file of sample lengths, or synthetic:NAME")
      ->type_name("PATH")
      ->required()
      ->group("Corpus");
  add_packing_options(app, options)->required();
  add_order_option(app, options);
  add_reading_options(app, options);
}

Corpus read(const CorpusOptions& options) {
  ReadOptions with_seed = options.read;
  with_seed.synthetic_seed = options.seed;
  return read_corpus(options.corpus, with_seed);
}

Json to_json(const PackingReport& report) {
  return {{"documents", report.documents},
          {"tokens", report.tokens},
          {"empty_documents", report.empty_documents},
          {"oversize_documents", report.oversize_documents},
          {"oversize_tokens", report.oversize_tokens},
          {"truncated_documents", report.truncated_documents},
          {"truncated_tokens", report.truncated_tokens},
          {"split_documents", report.split_documents},
          {"split_samples", report.split_samples},
          {"dropped_documents", report.dropped_documents},
          {"dropped_tokens", report.dropped_tokens},
          {"sequences", report.sequences},
          {"samples", report.samples},
          {"padding_tokens", report.padding_tokens}};
}

std::string describe(const PackingReport& report, const PackingOptions& options) {
  const double room = static_cast<double>(report.sequences) * static_cast<double>(options.tokens);
  const double padding = room > 0 ? 100 * static_cast<double>(report.padding_tokens) / room : 0;
  std::string text =
      fmt::format("{} samples in {} sequences of {} ({}), {:.1f}% padding",
                  with_commas(report.samples), with_commas(report.sequences),
                  format_size(options.tokens), packing_name(options.packing), padding);
  if (report.oversize_documents > 0) {
    text += fmt::format(", {} longer than a sequence ({})", with_commas(report.oversize_documents),
                        oversize_name(options.oversize));
  }
  return text;
}

}  // namespace libra::cli
