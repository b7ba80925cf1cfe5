#include "libra/corpus/jsonl_reader.h"

#include <gmock/gmock.h>

#include "libra/corpus/test_files.h"

namespace libra {
namespace {

using Lengths = std::vector<std::int64_t>;
using testing::HasSubstr;

class JsonlReader : public testing::Test {
 protected:
  Lengths read(std::string_view text) { return read_jsonl(dir.write("x.jsonl", text)); }
  std::string error(std::string_view text) {
    return error_of<InputError>([&] { read(text); });
  }

  TempDir dir;
};

TEST_F(JsonlReader, TakesLengthThenSeqLengthsThenInputIds) {
  EXPECT_EQ(read(R"({"length": 512}
{"seq_lengths": [100, 0, 412]}
{"input_ids": [5, 17, 9]}
{"input_ids": [1, 2], "seq_lengths": [1, 1], "length": 7}
{"input_ids": [1, 2, 3], "seq_lengths": [1, 2]}
{"input_ids": []})"),
            (Lengths{512, 100, 0, 412, 3, 7, 1, 2, 0}));
}

TEST_F(JsonlReader, SkipsEmptyLinesAndTakesWindowsLineEnds) {
  EXPECT_EQ(read("\n{\"length\": 7}\r\n  \r\n{\"length\": 137}\n\n"), (Lengths{7, 137}));
}

TEST_F(JsonlReader, IgnoresOtherKeysWhateverTheyHold) {
  EXPECT_EQ(read(R"({"text": "length", "meta": {"length": [1], "input_ids": null}, "length": 3})"),
            Lengths{3});
  EXPECT_EQ(read(R"({"list": [[1, {"length": 9}], 2.5, true], "input_ids": [1, 2], "x": [1]})"),
            Lengths{2});
}

TEST_F(JsonlReader, NamesTheLineAndWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"tokens": 5})", "line 2: has none of the keys"},
      {R"({"length": -5})", "line 2: length -5 is negative"},
      {R"({"length": -9223372036854775808})", "length -9223372036854775808 is negative"},
      {R"({"length": 18446744073709551615})", "line 2: length 18446744073709551615 is too large"},
      {R"({"length": 5.0})", "line 2: 'length' is 5.0, not an integer"},
      {R"({"length": "5"})", "'length' is a string"},
      {R"({"length": null})", "'length' is null"},
      {R"({"length": [5]})", "'length' is a list"},
      {R"({"length": {"a": 5}})", "'length' is an object"},
      {R"({"seq_lengths": 5})", "'seq_lengths' is or holds a number"},
      {R"({"seq_lengths": [5, -1]})", "length -1 is negative"},
      {R"({"seq_lengths": [5, true]})", "'seq_lengths' is or holds a boolean"},
      {R"({"input_ids": [[1, 2]]})", "'input_ids' is or holds a list"},
      {R"({"input_ids": {"a": 1}})", "'input_ids' is or holds an object"},
      {R"({"length": 5)", "line 2: is not valid JSON at byte"},
      {R"({"length": 5} x)", "is not valid JSON"},
      {"{\"length\x01\": 5}", "is not valid JSON"},
      {"[5]", "line 2: is a list: each line must be an object"},
      {"5", "line 2: is a number: each line must be an object"},
      {"length 5", "is not valid JSON"},
  };
  for (const auto& [line, message] : cases) {
    SCOPED_TRACE(line);
    EXPECT_THAT(error("{\"length\": 1}\n" + line + "\n"), HasSubstr(message));
  }
}

TEST_F(JsonlReader, RefusesAFileWithoutADocument) {
  EXPECT_THAT(error("\n\n"), HasSubstr("holds no document"));
  EXPECT_THAT(error("{\"seq_lengths\": []}\n"), HasSubstr("holds no document"));
}

}  // namespace
}  // namespace libra
