#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "libra/base/error.h"
#include "libra/cost/built_in_profiles.h"
#include "libra/cost/device_profile.h"
#include "libra/cost/json_fields.h"

namespace libra {
namespace {

using nlohmann::ordered_json;

constexpr double kPsPerNs = 1e3;
constexpr double kPsPerUs = 1e6;
constexpr double kGflopsPerTflops = 1e3;
constexpr double kMbPerGb = 1e3;
constexpr double kMaxWhole = 1e15;  // beyond it a double does not hold every whole number

// Rounds once, here, to whole units; everything later is whole-number arithmetic.
std::int64_t to_whole(double value, double units) {
  return std::llround(std::clamp(value * units, -kMaxWhole, kMaxWhole));
}

std::int64_t read_constant_ps(const JsonObject& object, const char* name, double ps_per_unit) {
  const double value = object.number(name);
  if (value < 0) object.fail(name, fmt::format("is {}: must not be negative", value));
  return to_whole(value, ps_per_unit);
}

std::int64_t read_mb_per_s(const JsonObject& object, const char* name) {
  const double value = object.number(name);
  const std::int64_t whole = to_whole(value, kMbPerGb);
  if (whole < 1) object.fail(name, fmt::format("is {}: must be at least 0.001", value));
  return whole;
}

void append_rate(const JsonObject& pass, const nlohmann::json& rate, RateGrid* grid) {
  if (!rate.is_number()) pass.fail("tflops", "must hold numbers only");
  grid->gflops.push_back(to_whole(rate.get<double>(), kGflopsPerTflops));
}

const nlohmann::json& checked_level(const JsonObject& pass, const nlohmann::json& level,
                                    std::size_t size, const char* axis) {
  if (level.is_array() && level.size() == size) return level;
  pass.fail("tflops", fmt::format("must be nested arrays [heads][queries][keys]: {} need {} values",
                                  axis, size));
}

void read_rates(const JsonObject& pass, RateGrid* grid) {
  const nlohmann::json& heads =
      checked_level(pass, pass.array("tflops"), grid->heads.size(), "heads");
  for (const nlohmann::json& plane : heads) {
    for (const nlohmann::json& row : checked_level(pass, plane, grid->queries.size(), "queries")) {
      for (const nlohmann::json& rate : checked_level(pass, row, grid->keys.size(), "keys")) {
        append_rate(pass, rate, grid);
      }
    }
  }
}

DeviceProfileData::Pass read_pass(const JsonObject& object) {
  object.allow_only({"entry_ns", "queries", "keys", "heads", "tflops"});
  DeviceProfileData::Pass pass;
  pass.entry_ps = read_constant_ps(object, "entry_ns", kPsPerNs);
  pass.rates.queries = object.integers("queries");
  pass.rates.keys = object.integers("keys");
  pass.rates.heads = object.integers("heads");
  read_rates(object, &pass.rates);
  return pass;
}

DeviceProfile parse_device_profile(const std::string& text, const std::string& where) {
  const JsonObject file = parse_json_object(text, where);
  file.allow_only({"name", "source", "launch_us", "multiprocessors", "block_tokens", "add_gb_per_s",
                   "forward", "backward"});
  DeviceProfileData data;
  data.name = file.text("name");
  data.source = file.text("source");
  data.launch_ps = read_constant_ps(file, "launch_us", kPsPerUs);
  data.multiprocessors = file.integer32("multiprocessors");
  data.block_tokens = file.integer32("block_tokens");
  data.add_mb_per_s = read_mb_per_s(file, "add_gb_per_s");
  data.forward = read_pass(file.object("forward"));
  data.backward = read_pass(file.object("backward"));
  try {
    return DeviceProfile(std::move(data));
  } catch (const ConfigError& error) {
    throw InputError(where, error.what());
  }
}

ordered_json rates_to_json(const RateGrid& grid) {
  ordered_json planes = ordered_json::array();
  auto rate = grid.gflops.begin();
  for (std::size_t h = 0; h < grid.heads.size(); ++h) {
    ordered_json rows = ordered_json::array();
    for (std::size_t q = 0; q < grid.queries.size(); ++q) {
      ordered_json row = ordered_json::array();
      for (std::size_t k = 0; k < grid.keys.size(); ++k) {
        row.push_back(static_cast<double>(*rate++) / kGflopsPerTflops);
      }
      rows.push_back(std::move(row));
    }
    planes.push_back(std::move(rows));
  }
  return planes;
}

ordered_json pass_to_json(const DeviceProfileData::Pass& pass) {
  ordered_json object;
  object["entry_ns"] = static_cast<double>(pass.entry_ps) / kPsPerNs;
  object["queries"] = pass.rates.queries;
  object["keys"] = pass.rates.keys;
  object["heads"] = pass.rates.heads;
  object["tflops"] = rates_to_json(pass.rates);
  return object;
}

}  // namespace

const std::vector<std::string>& known_device_profiles() {
  static const std::vector<std::string> names = {"h200"};
  return names;
}

DeviceProfile find_device_profile(std::string_view name) {
  if (name == "h200") return parse_device_profile(kH200ProfileJson, "built-in profile h200");
  throw ConfigError(fmt::format("'{}' is not a known device profile: use one of {}", name,
                                fmt::join(known_device_profiles(), ", ")));
}

DeviceProfile load_device_profile(const std::string& name_or_path) {
  const auto& names = known_device_profiles();
  if (std::find(names.begin(), names.end(), name_or_path) != names.end()) {
    return find_device_profile(name_or_path);
  }
  try {
    return parse_device_profile(read_json_file(name_or_path), name_or_path);
  } catch (const InputError& error) {
    if (std::filesystem::exists(name_or_path)) throw;
    throw InputError(name_or_path, fmt::format("is no file and none of the built-in profiles: {}",
                                               fmt::join(names, ", ")));
  }
}

std::string format_device_profile(const DeviceProfileData& data) {
  ordered_json object;
  object["name"] = data.name;
  object["source"] = data.source;
  object["launch_us"] = static_cast<double>(data.launch_ps) / kPsPerUs;
  object["multiprocessors"] = data.multiprocessors;
  object["block_tokens"] = data.block_tokens;
  object["add_gb_per_s"] = static_cast<double>(data.add_mb_per_s) / kMbPerGb;
  object["forward"] = pass_to_json(data.forward);
  object["backward"] = pass_to_json(data.backward);
  return object.dump(2) + "\n";
}

}  // namespace libra
