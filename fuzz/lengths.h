// What every reader of sample lengths promises of what it returns.
#pragma once

#include <cstdint>
#include <vector>

#include "fuzz/expect.h"
#include "libra/corpus/corpus.h"

namespace libra::fuzz {

inline void expect_lengths(const std::vector<std::int64_t>& lengths) {
  expect(!lengths.empty(), "a corpus has a document");
  std::int64_t total = 0;
  for (const std::int64_t tokens : lengths) {
    expect(tokens >= 0 && tokens <= kMaxDocumentTokens, "lengths are within the limit");
    expect(!__builtin_add_overflow(total, tokens, &total), "the total fits 63 bits");
  }
}

}  // namespace libra::fuzz
