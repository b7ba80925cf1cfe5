#include "libra/cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace libra::cli {
namespace {

std::vector<std::size_t> widths_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  return widths;
}

std::string line_of(const std::vector<std::string>& row, const std::vector<std::size_t>& widths) {
  std::string line = fmt::format("  {:<{}}", row.front(), widths.front());
  for (std::size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], widths[i]);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

std::string TextTable::text() const {
  const std::vector<std::size_t> widths = widths_of(rows_);
  std::string text;
  for (const auto& row : rows_) text += line_of(row, widths);
  return text;
}

std::string bar(double share, int width) {
  if (!(share > 0)) return "";
  const int length = static_cast<int>(std::lround(std::min(share, 1.0) * width));
  return std::string(static_cast<std::size_t>(std::max(length, 1)), '#');
}

std::string with_commas(long long value) {
  std::string digits = fmt::format("{}", value);
  const std::ptrdiff_t first = value < 0 ? 1 : 0;
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

}  // namespace libra::cli
