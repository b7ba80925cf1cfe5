#include "libra/base/error.h"

#include <utility>

namespace libra {
namespace {

std::string on_one_line(std::string_view message) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string line;
  line.reserve(message.size());
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      line += c;
    } else {
      line += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 0xFU]};
    }
  }
  return line;
}

}  // namespace

Error::Error(std::string_view message) : std::runtime_error(on_one_line(message)) {}

InputError::InputError(std::string where, const std::string& what_is_wrong)
    : Error(where + ": " + what_is_wrong), where_(std::move(where)) {}

}  // namespace libra
