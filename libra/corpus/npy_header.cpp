#include "libra/corpus/npy_header.h"

#include <fmt/format.h>

#include <charconv>

#include "libra/base/error.h"
#include "libra/corpus/npy_reader.h"

namespace libra {
namespace {

// Reads the literal from left to right; every member consumes what it returns.
class DictionaryParser {
 public:
  DictionaryParser(std::string_view text, const std::string& path) : rest_(text), path_(path) {}

  NpyHeader parse() {
    NpyHeader header;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      value(key, header);
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (seen_ != kAll) fail("lacks one of 'descr', 'fortran_order' and 'shape'");
    return header;
  }

 private:
  static constexpr unsigned kDescr = 1;
  static constexpr unsigned kOrder = 2;
  static constexpr unsigned kShape = 4;
  static constexpr unsigned kAll = kDescr | kOrder | kShape;

  void value(const std::string& key, NpyHeader& header) {
    if (key == "descr") {
      seen_ |= kDescr;
      header.descr = accept('[') ? record() : string();
    } else if (key == "fortran_order") {
      seen_ |= kOrder;
      header.fortran_order = boolean();
    } else if (key == "shape") {
      seen_ |= kShape;
      header.shape = tuple();
    } else {
      fail(fmt::format("has the unknown key {}", in_quotes(key)));
    }
  }

  std::string string() {
    skip_space();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    const std::size_t end = rest_.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos) unexpected("a string");
    std::string result(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return result;
  }

  // A record type is refused later; here it only has to be stepped over.
  std::string record() {
    int depth = 1;
    std::string text = "[";
    while (depth > 0 && !rest_.empty()) {
      depth += rest_.front() == '[' ? 1 : rest_.front() == ']' ? -1 : 0;
      text += rest_.front();
      rest_.remove_prefix(1);
    }
    return text;
  }

  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    unexpected("True or False");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      sizes.push_back(size());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }

  std::int64_t size() {
    skip_space();
    std::int64_t result = 0;
    const char* end = rest_.data() + rest_.size();
    const auto [stop, error] = std::from_chars(rest_.data(), end, result);
    if (error != std::errc() || result < 0) unexpected("an array size");
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
    accept('L');  // Python 2 wrote long integers so
    return result;
  }

  bool accept(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c)) unexpected(fmt::format("'{}'", c));
  }

  void skip_space() {
    const std::size_t used = rest_.find_first_not_of(" \t\n");
    rest_.remove_prefix(used == std::string_view::npos ? rest_.size() : used);
  }

  [[noreturn]] void unexpected(std::string_view wanted) const {
    fail(fmt::format("is damaged: expected {} at {}", wanted, in_quotes(rest_)));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(path_, "the NPY header " + what);
  }

  std::string_view rest_;
  const std::string& path_;
  unsigned seen_ = 0;
};

}  // namespace

NpyHeader parse_npy_dictionary(std::string_view text, const std::string& path) {
  return DictionaryParser(text, path).parse();
}

NpyHeader read_npy_header(SourceFile& file) {
  const std::int64_t magic_bytes = static_cast<std::int64_t>(kNpyMagic.size()) + 2;
  if (file.read(0, 1, "the NPY magic").front() != kNpyMagic.front() ||
      !file.read(0, magic_bytes, "the NPY magic").starts_with(kNpyMagic)) {
    throw InputError(file.path(), "is no NPY file: it does not begin with \\x93NUMPY");
  }
  const int version = file.read(0, magic_bytes, "the NPY version")[kNpyMagic.size()];
  if (version < 1 || version > 3) {
    throw InputError(file.path(), fmt::format("is NPY version {}: 1, 2 or 3 can be read", version));
  }
  const std::int64_t length_bytes = version == 1 ? 2 : 4;
  const std::string length = file.read(magic_bytes, length_bytes, "the NPY header's length");
  const std::int64_t text_bytes = version == 1
                                      ? std::int64_t{load_little<std::uint16_t>(length.data())}
                                      : std::int64_t{load_little<std::uint32_t>(length.data())};
  const std::int64_t text_offset = magic_bytes + length_bytes;
  const std::string text = file.read(text_offset, text_bytes, "the NPY header");
  NpyHeader header = parse_npy_dictionary(text, file.path());
  header.data_offset = text_offset + text_bytes;
  return header;
}

}  // namespace libra
