#include "libra/corpus/jsonl_reader.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "libra/corpus/length_collector.h"
#include "libra/corpus/source_file.h"

namespace libra {
namespace {

using Json = nlohmann::json;

/// A number as the file states it; the collector decides whether it can be a length.
struct Number {
  bool is_negative = false;
  std::uint64_t magnitude = 0;
};

// Follows one line's events and keeps the numbers of the keys that matter. A false return value
// makes the parser stop; `problem` then says why.
class LineEvents final : public nlohmann::json_sax<Json> {
 public:
  std::optional<Number> length;
  std::optional<std::vector<Number>> seq_lengths;
  std::optional<std::int64_t> input_ids;
  std::string problem;

  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_float(number_float_t, const string_t& text) override { return scalar(text); }
  bool string(string_t&) override { return scalar("a string"); }
  bool binary(binary_t&) override { return scalar("binary data"); }
  bool number_integer(number_integer_t value) override {
    // Only negative numbers come here; the magnitude of the smallest one does not fit otherwise.
    return number({value < 0, value < 0 ? ~static_cast<std::uint64_t>(value) + 1
                                        : static_cast<std::uint64_t>(value)});
  }
  bool number_unsigned(number_unsigned_t value) override { return number({false, value}); }

  bool start_object(std::size_t) override {
    if (depth_ == 0) return ++depth_ != 0;
    return open("an object");
  }
  bool start_array(std::size_t) override {
    if (depth_ == 1 && key_ == Key::kSeqLengths) seq_lengths.emplace();
    if (depth_ == 1 && key_ == Key::kInputIds) input_ids.emplace(0);
    if (depth_ == 1 && (key_ == Key::kSeqLengths || key_ == Key::kInputIds)) return ++depth_ != 0;
    return open("a list");
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (depth_ != 1) return true;
    key_ = name == "length"        ? Key::kLength
           : name == "seq_lengths" ? Key::kSeqLengths
           : name == "input_ids"   ? Key::kInputIds
                                   : Key::kOther;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception&) override {
    return fail(
        fmt::format("is not valid JSON at byte {}, near {}", position, in_quotes(last_token)));
  }

 private:
  enum class Key : std::uint8_t { kOther, kLength, kSeqLengths, kInputIds };

  bool number(Number value) {
    if (depth_ == 1 && key_ == Key::kLength) length = value;
    if (depth_ == 2 && key_ == Key::kSeqLengths) seq_lengths->push_back(value);
    if (depth_ == 2 && key_ == Key::kInputIds) ++*input_ids;
    return (depth_ == 1 && key_ == Key::kLength) || depth_ == 2 || scalar("a number");
  }

  bool scalar(std::string_view found) {
    if (depth_ == 0) return fail(fmt::format("is {}: each line must be an object", found));
    return key_ == Key::kOther || wrong_type(found);
  }

  // An array or object where none of the three keys expects one.
  bool open(std::string_view found) {
    if (depth_ == 0) return fail(fmt::format("is {}: each line must be an object", found));
    ++depth_;
    return key_ == Key::kOther || wrong_type(found);
  }

  bool close() {
    --depth_;
    return true;
  }

  bool wrong_type(std::string_view found) {
    if (key_ == Key::kLength) return fail(fmt::format("'length' is {}, not an integer", found));
    return fail(fmt::format("'{}' is or holds {}: it must be a list of integers",
                            key_ == Key::kSeqLengths ? "seq_lengths" : "input_ids", found));
  }

  bool fail(std::string what) {
    problem = std::move(what);
    return false;
  }

  int depth_ = 0;
  Key key_ = Key::kOther;
};

void add_number(LengthCollector& found, Number number, std::int64_t line) {
  if (number.is_negative) {
    found.fail(line, fmt::format("length -{} is negative: a document has 0 or more tokens",
                                 number.magnitude));
  }
  found.add(number.magnitude, line);
}

void add_line(LengthCollector& found, const LineEvents& events, std::int64_t line) {
  if (events.length) {
    add_number(found, *events.length, line);
  } else if (events.seq_lengths) {
    for (const Number number : *events.seq_lengths) add_number(found, number, line);
  } else if (events.input_ids) {
    found.add(*events.input_ids, line);
  } else {
    found.fail(line, "has none of the keys 'length', 'seq_lengths' and 'input_ids'");
  }
}

}  // namespace

std::vector<std::int64_t> read_jsonl(const std::string& path) {
  SourceFile file(path);
  LengthCollector found(path, "line");
  std::string text;
  for (std::int64_t line = 1; file.next_line(text); ++line) {
    if (text.find_first_not_of(" \t") == std::string::npos) continue;
    LineEvents events;
    if (!Json::sax_parse(text, &events)) found.fail(line, events.problem);
    add_line(found, events, line);
  }
  return std::move(found).take();
}

}  // namespace libra
