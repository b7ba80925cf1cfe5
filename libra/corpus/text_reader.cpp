#include "libra/corpus/text_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "libra/corpus/length_collector.h"
#include "libra/corpus/source_file.h"

namespace libra {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\f\v";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

void add_line(LengthCollector& found, std::string_view text, std::int64_t line) {
  std::int64_t length = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, length);
  if (error == std::errc::result_out_of_range && rest == end) {
    found.fail(line,
               fmt::format("{} is too large: a document has at most 2^40 tokens", in_quotes(text)));
  }
  if (error != std::errc() || rest != end) {
    found.fail(line,
               fmt::format("{} is not a whole number: write one length a line", in_quotes(text)));
  }
  found.add(length, line);
}

}  // namespace

std::vector<std::int64_t> read_text(const std::string& path) {
  SourceFile file(path);
  LengthCollector found(path, "line");
  std::string text;
  for (std::int64_t line = 1; file.next_line(text); ++line) {
    const std::string_view content = trimmed(text);
    if (content.empty() || content.front() == '#') continue;
    add_line(found, content, line);
  }
  return std::move(found).take();
}

}  // namespace libra
