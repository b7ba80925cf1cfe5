#include "libra/cost/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "libra/base/error.h"
#include "libra/base/file.h"

namespace libra {
namespace {

using nlohmann::json;

bool fits_64_bits(const json& value) {
  if (!value.is_number_integer()) return false;
  return !value.is_number_unsigned() ||
         value.get<std::uint64_t>() <=
             static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

}  // namespace

JsonObject::JsonObject(json value, std::string where, std::string prefix)
    : value_(std::move(value)), where_(std::move(where)), prefix_(std::move(prefix)) {
  if (value_.is_object()) return;
  const std::string what = prefix_.empty()
                               ? "the file"
                               : fmt::format("field '{}'", prefix_.substr(0, prefix_.size() - 1));
  throw InputError(where_, fmt::format("{} must be a JSON object", what));
}

void JsonObject::fail(std::string_view name, std::string_view what_is_wrong) const {
  throw InputError(where_, fmt::format("field '{}{}' {}", prefix_, name, what_is_wrong));
}

void JsonObject::allow_only(std::initializer_list<std::string_view> names) const {
  for (const auto& item : value_.items()) {
    if (std::find(names.begin(), names.end(), item.key()) != names.end()) continue;
    fail(item.key(), fmt::format("is not known: use {}", fmt::join(names, ", ")));
  }
}

const json& JsonObject::field(const char* name) const {
  const auto found = value_.find(name);
  if (found == value_.end()) fail(name, "is missing");
  return *found;
}

std::string JsonObject::text(const char* name) const {
  const json& value = field(name);
  if (!value.is_string()) fail(name, "must be a text in quotes");
  return value.get<std::string>();
}

double JsonObject::number(const char* name) const {
  const json& value = field(name);
  if (!value.is_number() || !std::isfinite(value.get<double>())) fail(name, "must be a number");
  return value.get<double>();
}

double JsonObject::number_or(const char* name, double fallback) const {
  return value_.contains(name) ? number(name) : fallback;
}

std::int64_t JsonObject::integer(const char* name) const {
  const json& value = field(name);
  if (!fits_64_bits(value)) fail(name, "must be a whole number");
  return value.get<std::int64_t>();
}

std::int32_t JsonObject::integer32(const char* name) const {
  const std::int64_t value = integer(name);
  if (value != static_cast<std::int32_t>(value)) fail(name, fmt::format("is too large: {}", value));
  return static_cast<std::int32_t>(value);
}

std::vector<std::int64_t> JsonObject::integers(const char* name) const {
  std::vector<std::int64_t> values;
  for (const json& value : array(name)) {
    if (!fits_64_bits(value)) fail(name, "must hold whole numbers only");
    values.push_back(value.get<std::int64_t>());
  }
  return values;
}

JsonObject JsonObject::object(const char* name) const {
  return JsonObject(field(name), where_, fmt::format("{}{}.", prefix_, name));
}

const json& JsonObject::array(const char* name) const {
  const json& value = field(name);
  if (!value.is_array()) fail(name, "must be an array");
  return value;
}

JsonObject parse_json_object(const std::string& text, const std::string& where) {
  json value;
  try {
    value = json::parse(text);
  } catch (const json::parse_error& error) {
    throw InputError(where, fmt::format("is not JSON: byte {} is wrong", error.byte));
  } catch (const json::exception&) {
    throw InputError(where, "holds a number that is too large for a double");
  }
  return JsonObject(std::move(value), where, "");
}

std::string read_json_file(const std::string& path) {
  std::string text = read_file(path, "a JSON object");
  if (text.empty()) throw InputError(path, "is empty: must hold a JSON object");
  return text;
}

}  // namespace libra
