// Windows of packed sequences for the studies: a corpus, a length, a number of windows, a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libra/corpus/corpus.h"
#include "libra/corpus/window.h"

namespace libra {

/// `windows` windows of `sequences` packed sequences of `tokens` tokens (first-fit over 32 open
/// bins, oversize split).
inline std::vector<std::vector<PackedSequence>> study_windows(const std::string& corpus_spec,
                                                              std::int64_t tokens,
                                                              std::int64_t sequences, int windows,
                                                              std::uint64_t seed) {
  ReadOptions read;
  read.synthetic_seed = seed;
  const Corpus corpus = read_corpus(corpus_spec, read);
  WindowOptions options;
  options.sequences = sequences;
  options.packing.tokens = tokens;
  options.packing.oversize = Oversize::kSplit;
  options.seed = seed;
  WindowStream stream(corpus, options);
  std::vector<std::vector<PackedSequence>> result;
  for (int i = 0; i < windows; ++i) {
    std::vector<PackedSequence>& window = result.emplace_back();
    for (Packed& packed : stream.next().sequences) window.push_back(std::move(packed.sequence));
  }
  return result;
}

}  // namespace libra
