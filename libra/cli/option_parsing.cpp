#include "libra/cli/option_parsing.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "libra/base/error.h"
#include "libra/base/units.h"

namespace libra::cli {

CLI::Option* add_parsed(CLI::App& app, const std::string& name,
                        const std::function<void(const std::string&)>& set,
                        const std::string& help) {
  const auto callback = [name, set](const std::string& text) {
    try {
      set(text);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", name, error.what()));
    }
  };
  return app.add_option_function<std::string>(name, callback, help);
}

CLI::Option* add_size(CLI::App& app, const std::string& name, std::int64_t& target,
                      const std::string& help) {
  auto* option = add_parsed(
      app, name, [&target](const std::string& text) { target = parse_size(text); }, help);
  option->type_name("SIZE");
  return target == 0 ? option : option->default_str(format_size(target));
}

CLI::Option* add_count(CLI::App& app, const std::string& name, std::int32_t& target,
                       const std::string& help) {
  auto* option = add_parsed(
      app, name, [&target](const std::string& text) { target = parse_count(text); }, help);
  option->type_name("N");
  return target == 0 ? option : option->default_str(format_size(target));
}

std::int32_t parse_count(const std::string& text) {
  const std::int64_t value = parse_size(text);
  if (value > std::numeric_limits<std::int32_t>::max()) {
    throw ConfigError(fmt::format("{} is too large: it must be below 2048M", text));
  }
  return static_cast<std::int32_t>(value);
}

double parse_decimal(const std::string& text, double most) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value >= 0 && value <= most)) {
    throw ConfigError(fmt::format("'{}' is not a number from 0 to {}", text, most));
  }
  return value;
}

void add_json_option(CLI::App& app, std::string& target) {
  app.add_option("--json", target, "Write the results as JSON; - is standard output, without text")
      ->type_name("FILE");
}

}  // namespace libra::cli
