// Reading a JSON file field by field, so that every error names the file and the field.
//
//   const JsonObject file = read_json_object(path);
//   file.allow_only({"name", "gpus_per_node"});
//   const auto gpus = file.integer("gpus_per_node");
//
// Internal to this room: public headers do not mention nlohmann::json.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace libra {

/// Every member throws InputError: a missing field, or one of another type.
class JsonObject {
 public:
  /// `where` is the file, `prefix` the fields that lead here ("forward."). Throws if `value` is not
  /// an object.
  JsonObject(nlohmann::json value, std::string where, std::string prefix);

  /// Throws for a field not listed: a misspelt name must not pass silently.
  void allow_only(std::initializer_list<std::string_view> names) const;

  std::string text(const char* name) const;
  double number(const char* name) const;                      ///< finite
  double number_or(const char* name, double fallback) const;  ///< `fallback` if it is missing
  std::int64_t integer(const char* name) const;
  std::int32_t integer32(const char* name) const;
  std::vector<std::int64_t> integers(const char* name) const;
  JsonObject object(const char* name) const;
  const nlohmann::json& array(const char* name) const;

  [[noreturn]] void fail(std::string_view name, std::string_view what_is_wrong) const;
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& field(const char* name) const;

  nlohmann::json value_;
  std::string where_;
  std::string prefix_;
};

/// Throws InputError for a text that is not JSON or no object. `where` is for messages only.
JsonObject parse_json_object(const std::string& text, const std::string& where);

/// The whole file. Throws InputError if it cannot be read or is empty.
std::string read_json_file(const std::string& path);

}  // namespace libra
