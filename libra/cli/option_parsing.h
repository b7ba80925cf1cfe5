// Options as this program's commands declare them: values go through Libra's own parsers, so that
// every error has its words, with the option's name in front.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace libra::cli {

/// `set` is called with the option's text; a ConfigError from it gets the option's name in front.
CLI::Option* add_parsed(CLI::App& app, const std::string& name,
                        const std::function<void(const std::string&)>& set,
                        const std::string& help);

/// A size with K or M (parse_size). `target`'s value is shown as the default unless it is 0.
CLI::Option* add_size(CLI::App& app, const std::string& name, std::int64_t& target,
                      const std::string& help);

/// The same, below 2^31.
CLI::Option* add_count(CLI::App& app, const std::string& name, std::int32_t& target,
                       const std::string& help);

/// A size, as add_count takes it. Throws ConfigError.
std::int32_t parse_count(const std::string& text);

/// A decimal number from 0 to `most`. Throws ConfigError.
double parse_decimal(const std::string& text, double most);

/// --json FILE, which every command has.
void add_json_option(CLI::App& app, std::string& target);

}  // namespace libra::cli
