#include "libra/corpus/text_reader.h"

#include <gmock/gmock.h>

#include "libra/corpus/test_files.h"

namespace libra {
namespace {

using Lengths = std::vector<std::int64_t>;
using testing::HasSubstr;

class TextReader : public testing::Test {
 protected:
  Lengths read(std::string_view text) { return read_text(dir.write("x.txt", text)); }
  std::string error(std::string_view text) {
    return error_of<InputError>([&] { read(text); });
  }

  TempDir dir;
};

TEST_F(TextReader, ReadsOneLengthALine) {
  EXPECT_EQ(read("# tokens\n7\n\n 137\t\r\n2041\n  # more\n0\n89"), (Lengths{7, 137, 2041, 0, 89}));
}

TEST_F(TextReader, NamesTheLineAndRepeatsItsText) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"12 tokens", "line 3: '12 tokens' is not a whole number"},
      {"1,024", "line 3: '1,024'"},
      {"1.5", "line 3: '1.5'"},
      {"256K", "line 3: '256K'"},
      {"-4", "line 3: length -4 is negative"},
      {"1099511627777", "line 3: length 1099511627777 is too large"},
      {"99999999999999999999", "line 3: '99999999999999999999' is too large"},
      {std::string("\0\x1b[31m", 6), "line 3: '\\x00\\x1b[31m'"},
      {std::string(1000, 'x'), "line 3: '" + std::string(40, 'x') + "...'"},
  };
  for (const auto& [line, message] : cases) {
    SCOPED_TRACE(message);
    EXPECT_THAT(error("# first\n1\n" + line + "\n2\n"), HasSubstr(message));
  }
}

TEST_F(TextReader, RefusesATotalThatOverflows) {
  std::string text;
  for (int i = 0; i < (1 << 23); ++i) text += "1099511627776\n";
  EXPECT_THAT(error(text), HasSubstr("line 8388608: the corpus has 2^63 tokens or more"));
}

TEST_F(TextReader, RefusesAFileOfComments) {
  EXPECT_THAT(error("# nothing\n\n"), HasSubstr("holds no document"));
}

}  // namespace
}  // namespace libra
