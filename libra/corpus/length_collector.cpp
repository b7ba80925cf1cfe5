#include "libra/corpus/length_collector.h"

#include <fmt/format.h>

#include "libra/base/error.h"

namespace libra {

void LengthCollector::fail(std::int64_t where, std::string_view what_is_wrong) const {
  throw InputError(path_, fmt::format("{} {}: {}", unit_, where, what_is_wrong));
}

void LengthCollector::refuse(const std::string& length, std::int64_t where) const {
  if (length.front() == '-') {
    fail(where, fmt::format("length {} is negative: a document has 0 or more tokens", length));
  }
  fail(where, fmt::format("length {} is too large: a document has at most 2^40 tokens", length));
}

void LengthCollector::refuse_total(std::int64_t where) const {
  fail(where, "the corpus has 2^63 tokens or more up to here: are these really token counts?");
}

std::vector<std::int64_t> LengthCollector::take() && {
  if (lengths_.empty()) {
    throw InputError(path_, "holds no document: a corpus needs at least one length");
  }
  return std::move(lengths_);
}

}  // namespace libra
