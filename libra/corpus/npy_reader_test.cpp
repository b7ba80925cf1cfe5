#include "libra/corpus/npy_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <limits>

#include "libra/corpus/test_files.h"

namespace libra {
namespace {

using Lengths = std::vector<std::int64_t>;
using testing::HasSubstr;

std::string npy(std::string_view dictionary, std::string_view data, char major = 1) {
  const std::string text = std::string(dictionary) + "\n";
  const std::string length = major == 1 ? bytes_of(static_cast<std::uint16_t>(text.size()))
                                        : bytes_of(static_cast<std::uint32_t>(text.size()));
  return std::string(kNpyMagic) + major + '\0' + length + text + std::string(data);
}

std::string dictionary(std::string_view descr, std::string_view shape,
                       std::string_view fortran = "False") {
  return fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}", descr, fortran, shape);
}

template <typename Int>
std::string elements(std::initializer_list<Int> values, bool swapped = false) {
  std::string data;
  for (const Int value : values) {
    std::string bytes = bytes_of(value);
    if (swapped) std::reverse(bytes.begin(), bytes.end());
    data += bytes;
  }
  return data;
}

class NpyReader : public testing::Test {
 protected:
  Lengths read(const std::string& bytes) { return read_npy(dir.write("x.npy", bytes)); }
  std::string error(const std::string& bytes) {
    std::string message = error_of<InputError>([&] { read(bytes); });
    EXPECT_THAT(message, HasSubstr(dir.path() + "/x.npy: "));
    return message;
  }

  TempDir dir;
};

TEST_F(NpyReader, ReadsEveryIntegerTypeInBothByteOrders) {
  const Lengths wanted = {0, 7, 127};
  const auto check = [&](auto zero, std::string_view kind) {
    using Int = decltype(zero);
    for (const bool swapped : {false, true}) {
      const std::string descr = fmt::format("'{}{}{}'", swapped ? '>' : '<', kind, sizeof(Int));
      SCOPED_TRACE(descr);
      const std::string data = elements<Int>({0, 7, 127}, swapped);
      EXPECT_EQ(read(npy(dictionary(descr, "(3,)"), data)), wanted);
    }
  };
  check(std::int8_t{}, "i");
  check(std::int16_t{}, "i");
  check(std::int32_t{}, "i");
  check(std::int64_t{}, "i");
  check(std::uint8_t{}, "u");
  check(std::uint16_t{}, "u");
  check(std::uint32_t{}, "u");
  check(std::uint64_t{}, "u");
}

TEST_F(NpyReader, UnsignedTypesReachTheirUpperHalf) {
  EXPECT_EQ(read(npy(dictionary("'|u1'", "(1,)"), "\xFF")), Lengths{255});
  EXPECT_EQ(read(npy(dictionary("'<u4'", "(1,)"), elements<std::uint32_t>({0xFFFFFFFFU}))),
            Lengths{0xFFFFFFFFLL});
}

TEST_F(NpyReader, ReadsAllHeaderVersionsAndSpellings) {
  const std::string data = elements<std::int16_t>({2041, 89});
  for (const char version : {'\1', '\2', '\3'}) {
    EXPECT_EQ(read(npy(dictionary("'<i2'", "(2,)"), data, version)), (Lengths{2041, 89}));
  }
  EXPECT_EQ(read(npy("{\"shape\":(2L,),\"fortran_order\":True,\"descr\":\"<i2\"}", data)),
            (Lengths{2041, 89}));
}

TEST_F(NpyReader, KeepsLengthsThatAreNoMultipleOfAnything) {
  EXPECT_EQ(read(npy(dictionary("'<i4'", "(4,)"), elements<std::int32_t>({7, 137, 2041, 89}))),
            (Lengths{7, 137, 2041, 89}));
}

TEST_F(NpyReader, ReadsMoreThanOneRunOfElements) {
  std::string data;
  Lengths wanted;
  for (std::int64_t i = 0; i < 300'000; ++i) {
    data += bytes_of(static_cast<std::int32_t>(i));
    wanted.push_back(i);
  }
  EXPECT_EQ(read(npy(dictionary("'<i4'", "(300000,)"), data)), wanted);
}

TEST_F(NpyReader, RefusesOtherArraysAndSaysWhatTheyAre) {
  const std::string data(64, '\1');
  const std::vector<std::array<std::string, 3>> cases = {
      {"'<f8'", "(8,)", "floating-point numbers (dtype '<f8')"},
      {"'|O'", "(8,)", "Python objects"},
      {"'|b1'", "(64,)", "booleans"},
      {"'<c16'", "(4,)", "complex"},
      {"'<U4'", "(4,)", "strings"},
      {"'<M8[D]'", "(8,)", "no integers"},
      {"'<i3'", "(8,)", "no integers"},
      {"[('a', '<i4'), ('b', '<i4')]", "(8,)", "records"},
      {"'<i4'", "(4, 4)", "has 2 dimensions, shape (4, 4)"},
      {"'<i4'", "()", "has 0 dimensions"},
      {"'<i4'", "(16, 1)", "has 2 dimensions"},
  };
  for (const auto& [descr, shape, message] : cases) {
    EXPECT_THAT(error(npy(dictionary(descr, shape), data)), HasSubstr(message));
  }
  EXPECT_THAT(error(npy(dictionary("'<i4'", "(4, 4)", "True"), data)), HasSubstr("2 dimensions"));
}

TEST_F(NpyReader, RefusesDataOfAnotherSizeThanPromised) {
  const std::string data = elements<std::int32_t>({1, 2, 3});
  EXPECT_THAT(error(npy(dictionary("'<i4'", "(4,)"), data)), HasSubstr("truncated"));
  EXPECT_THAT(error(npy(dictionary("'<i4'", "(2,)"), data)), HasSubstr("too long"));
  EXPECT_THAT(error(npy(dictionary("'<i4'", "(3,)"), data + "x")), HasSubstr("13 bytes follow"));
}

TEST_F(NpyReader, RefusesAPromiseOfExabytesWithoutAllocatingThem) {
  const std::string data = elements<std::int64_t>({1});
  EXPECT_THAT(error(npy(dictionary("'<i8'", "(9223372036854775807,)"), data)),
              HasSubstr("truncated"));
  EXPECT_THAT(error(npy(dictionary("'<i8'", "(99999999999999999999,)"), data)),
              HasSubstr("expected an array size"));
  std::string huge_header = std::string(kNpyMagic) + "\2" + '\0' + "\xFF\xFF\xFF\xFF{";
  EXPECT_THAT(error(huge_header), HasSubstr("truncated"));
}

TEST_F(NpyReader, RefusesEveryTruncationOfAGoodFile) {
  const std::string good = npy(dictionary("'<i4'", "(2,)"), elements<std::int32_t>({5, 6}));
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    error(good.substr(0, bytes));
  }
}

TEST_F(NpyReader, RefusesDamagedHeaders) {
  for (const std::string_view text :
       {"", "{", "[1]", "{'descr': '<i4'}", "{'descr': '<i4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': <i4, 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<i4', 'fortran_order': False 'shape': (1,)}", "{'descr': [('a', '<i4'"}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(error(npy(text, "\1\1\1\1")), HasSubstr("the NPY header"));
  }
  EXPECT_THAT(error("no npy at all"), HasSubstr("\\x93NUMPY"));
  EXPECT_THAT(error(npy(dictionary("'<i4'", "(1,)"), "\1\1\1\1", '\4')), HasSubstr("version 4"));
}

TEST_F(NpyReader, NamesTheRowOfABadLength) {
  EXPECT_THAT(error(npy(dictionary("'<i4'", "(3,)"), elements<std::int32_t>({1, 2, -3}))),
              HasSubstr("row 2: length -3 is negative"));
  EXPECT_THAT(error(npy(dictionary("'<u8'", "(2,)"),
                        elements<std::uint64_t>({1, std::numeric_limits<std::uint64_t>::max()}))),
              HasSubstr("row 1: length 18446744073709551615 is too large"));
  const std::int64_t most = std::int64_t{1} << 40;
  EXPECT_EQ(read(npy(dictionary("'<i8'", "(1,)"), elements<std::int64_t>({most}))), Lengths{most});
  EXPECT_THAT(error(npy(dictionary("'<i8'", "(1,)"), elements<std::int64_t>({most + 1}))),
              HasSubstr("at most 2^40"));
}

TEST_F(NpyReader, RefusesAnArrayOfNothing) {
  EXPECT_THAT(error(npy(dictionary("'<i4'", "(0,)"), "")), HasSubstr("holds no document"));
}

}  // namespace
}  // namespace libra
