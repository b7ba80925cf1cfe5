// Columns for a terminal: the first is aligned left, the others right.
//
//   TextTable table({"placer", "max/mean"});
//   table.add({"none", "4.21"});
//   out << table.text();
#pragma once

#include <string>
#include <vector>

namespace libra::cli {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> head) { rows_.push_back(std::move(head)); }

  /// Requires as many cells as the head has.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /// One line per row, indented by two spaces, without trailing spaces. Widths are in bytes.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// `share` of `width`, 0 to 1, as a bar of #, at least one if share is positive.
std::string bar(double share, int width);

/// 1234567 is "1,234,567".
std::string with_commas(long long value);

}  // namespace libra::cli
