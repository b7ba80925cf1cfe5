// The options that say which corpus is read and how it is packed: shared by all commands that do.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "libra/cli/report.h"
#include "libra/corpus/corpus.h"
#include "libra/corpus/packing.h"
#include "libra/corpus/window.h"

namespace libra::cli {

struct CorpusOptions {
  std::string corpus;  ///< what read_corpus takes
  ReadOptions read;
  PackingOptions packing;  ///< tokens: 0 if --seq-len was not given
  ReadOrder order = ReadOrder::kShuffled;
  std::uint64_t seed = 0;  ///< of the reading order and of synthetic corpora
};

/// --idx-unit, --synthetic-documents, --seed.
void add_reading_options(CLI::App& app, CorpusOptions& options);

/// --seq-len, --packing, --oversize; returns --seq-len.
CLI::Option* add_packing_options(CLI::App& app, CorpusOptions& options);

/// --order.
void add_order_option(CLI::App& app, CorpusOptions& options);

/// --corpus and all of the above, --corpus and --seq-len required: for commands that make windows.
void add_window_corpus_options(CLI::App& app, CorpusOptions& options);

/// read_corpus with the seed where it belongs.
Corpus read(const CorpusOptions& options);

Json to_json(const PackingReport& report);

/// One line: how many sequences, how full, what became of documents that are too long.
std::string describe(const PackingReport& report, const PackingOptions& options);

}  // namespace libra::cli
