// Numbers and names as the command line takes them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/expect.h"
#include "libra/base/units.h"
#include "libra/cli/length_scale.h"
#include "libra/cli/option_parsing.h"
#include "libra/corpus/packing.h"
#include "libra/plan/plan_options.h"

namespace libra::fuzz {
namespace {

void parse_sizes(const std::string& text) {
  accepted([&] {
    const std::int64_t size = parse_size(text);
    expect(size >= 0 && parse_size(format_size(size)) == size, "a size reads back");
  });
  accepted([&] { expect(cli::parse_count(text) >= 0, "a count is not negative"); });
  accepted([&] {
    const double value = cli::parse_decimal(text, 1e6);
    expect(value >= 0 && value <= 1e6, "a decimal number is in its range");
  });
}

void parse_scale(const std::string& text) {
  accepted([&] {
    const cli::LengthScale scale = cli::parse_length_scale(text);
    for (const std::int64_t length : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 40}) {
      expect(scale(length) <= std::max<std::int64_t>(length, 1), "lengths become no longer");
    }
    expect(cli::parse_length_scale(scale.text()).text() == scale.text(), "a scale reads back");
  });
}

void parse_names(const std::string& text) {
  accepted([&] { expect(home_name(parse_home(text)) == text, "a home's name"); });
  accepted([&] { expect(placer_name(parse_placer(text)) == text, "a placer's name"); });
  accepted([&] { expect(packing_name(parse_packing(text)) == text, "a packing's name"); });
  accepted([&] { expect(oversize_name(parse_oversize(text)) == text, "a policy's name"); });
}

}  // namespace
}  // namespace libra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  libra::fuzz::parse_sizes(text);
  libra::fuzz::parse_scale(text);
  libra::fuzz::parse_names(text);
  return 0;
}
