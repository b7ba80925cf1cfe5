// Gathers the lengths that a reader finds and refuses the ones that no corpus can have.
//
//   LengthCollector found(path, "line");
//   found.add(length, line);              // throws "PATH: line 7: length -3 is negative ..."
//   return std::move(found).take();       // throws if there was no document at all
//
// Used by the readers only; not installed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libra/corpus/corpus.h"

namespace libra {

class LengthCollector {
 public:
  /// `unit` is what `where` counts in messages: "row", "line", "document".
  LengthCollector(std::string path, std::string_view unit) : path_(std::move(path)), unit_(unit) {}

  /// Makes room for a count that the size of the file has already confirmed.
  void reserve(std::int64_t documents) { lengths_.reserve(static_cast<std::size_t>(documents)); }

  /// Appends one document. Throws InputError if it is negative, above kMaxDocumentTokens, or if the
  /// total leaves 63 bits.
  template <typename Int>
  void add(Int length, std::int64_t where) {
    if (std::cmp_less(length, 0) || std::cmp_greater(length, kMaxDocumentTokens)) {
      refuse(std::to_string(length), where);
    }
    const auto tokens = static_cast<std::int64_t>(length);
    if (tokens > kMaxTotal - total_) refuse_total(where);
    total_ += tokens;
    lengths_.push_back(tokens);
  }

  /// Throws InputError about the line, row or document `where`.
  [[noreturn]] void fail(std::int64_t where, std::string_view what_is_wrong) const;

  /// The lengths. Throws InputError if there are none.
  std::vector<std::int64_t> take() &&;

 private:
  static constexpr std::int64_t kMaxTotal = INT64_MAX;

  [[noreturn]] void refuse(const std::string& length, std::int64_t where) const;
  [[noreturn]] void refuse_total(std::int64_t where) const;

  std::string path_;
  std::string_view unit_;
  std::int64_t total_ = 0;
  std::vector<std::int64_t> lengths_;
};

}  // namespace libra
