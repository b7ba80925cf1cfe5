#include "libra/plan/plan_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "libra/base/error.h"
#include "libra/plan/memory_plan.h"
#include "libra/plan/plan_fields.h"
#include "libra/plan/traffic_bound.h"
#include "libra/plan/validate.h"

namespace libra {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(DType value) { return dtype_name(value); }
std::string_view name_of(HomeKind value) { return home_name(value); }
std::string_view name_of(PlacerKind value) { return placer_name(value); }
std::string_view name_of(Fetch value) { return fetch_name(value); }
std::string_view name_of(BackwardMode value) { return backward_name(value); }

void parse_into(DType& value, const std::string& text) { value = parse_dtype(text); }
void parse_into(HomeKind& value, const std::string& text) { value = parse_home(text); }
void parse_into(PlacerKind& value, const std::string& text) { value = parse_placer(text); }
void parse_into(Fetch& value, const std::string& text) { value = parse_fetch(text); }
void parse_into(BackwardMode& value, const std::string& text) { value = parse_backward(text); }

Json runs_to_json(const PlanOptions& options) {
  Json all = Json::array();
  for (const auto& parts : options.explicit_runs) {
    Json of_sequence = Json::array();
    for (const auto& runs : parts) {
      Json of_part = Json::array();
      for (const TokenRange run : runs) of_part.push_back({run.begin, run.end});
      of_sequence.push_back(std::move(of_part));
    }
    all.push_back(std::move(of_sequence));
  }
  return all;
}

Json options_to_json(const PlanOptions& options) {
  Json json;
  visit_options(options, [&json](const char* name, auto value) {
    if constexpr (std::is_enum_v<decltype(value)>) {
      json[name] = name_of(value);
    } else {
      json[name] = value;
    }
  });
  if (!options.explicit_runs.empty()) json["explicit_runs"] = runs_to_json(options);
  return json;
}

Json moves_to_json(const std::vector<RowMove>& moves) {
  Json json = Json::array();
  for (const RowMove& move : moves) {
    json.push_back({{"from", move.from},
                    {"to", move.to},
                    {"shard", move.shard},
                    {"round", move.round},
                    {"from_row", move.from_row},
                    {"to_row", move.to_row},
                    {"rows", move.rows}});
  }
  return json;
}

Json fetches_to_json(const std::vector<KvFetch>& fetches) {
  Json json = Json::array();
  for (const KvFetch& fetch : fetches) {
    json.push_back({{"destination", fetch.destination},
                    {"kv_shard", fetch.kv_shard},
                    {"sample", fetch.sample},
                    {"tokens", fetch.tokens},
                    {"arena_row", fetch.arena_row}});
  }
  return json;
}

Json memory_to_json(const PoolPlan& plan) {
  Json json = Json::array();
  for (const WorkerMemory& memory : plan_memory(plan)) {
    json.push_back({{"arena_bytes", memory.arena.bytes},
                    {"saved_bytes", memory.saved.bytes},
                    {"scratch_bytes", memory.scratch.bytes}});
  }
  return json;
}

[[noreturn]] void throw_wrong_field(const char* name) {
  throw PlanError(
      fmt::format("the plan's field '{}' is missing or is not what it should be", name));
}

// json.at(name) as T, with the field's name in the error.
template <typename T>
T field(const Json& json, const char* name) {
  try {
    return json.at(name).get<T>();
  } catch (const Json::exception&) {
    throw_wrong_field(name);
  }
}

// The library would round 1.5 and wrap what is out of range.
template <typename Int>
Int integer(const Json& json, const char* name) {
  if (!json.is_number_integer()) throw_wrong_field(name);
  const auto value = json.get<std::int64_t>();
  const bool wrapped = json.is_number_unsigned() && value < 0;
  if (wrapped || static_cast<std::int64_t>(static_cast<Int>(value)) != value)
    throw_wrong_field(name);
  return static_cast<Int>(value);
}

template <typename Int>
std::vector<Int> integers(const Json& json, const char* name) {
  std::vector<Int> values;
  for (const Json& value : field<std::vector<Json>>(json, name))
    values.push_back(integer<Int>(value, name));
  return values;
}

constexpr const char* kRuns = "explicit_runs";

TokenRange run_from_json(const Json& run) {
  if (!run.is_array() || run.size() != 2) throw_wrong_field(kRuns);
  return {integer<std::int64_t>(run[0], kRuns), integer<std::int64_t>(run[1], kRuns)};
}

PlanOptions options_from_json(const Json& json) {
  PlanOptions options;
  visit_options(options, [&json](const char* name, auto& value) {
    using Field = std::decay_t<decltype(value)>;
    if constexpr (std::is_enum_v<Field>) {
      parse_into(value, field<std::string>(json, name));
    } else if constexpr (std::is_same_v<Field, bool>) {
      value = field<bool>(json, name);
    } else {
      value = integer<Field>(field<Json>(json, name), name);
    }
  });
  if (!json.contains(kRuns)) return options;
  for (const auto& parts : field<std::vector<std::vector<std::vector<Json>>>>(json, kRuns)) {
    auto& of_sequence = options.explicit_runs.emplace_back();
    for (const auto& runs : parts) {
      auto& of_part = of_sequence.emplace_back();
      for (const Json& run : runs) of_part.push_back(run_from_json(run));
    }
  }
  return options;
}

Json parse_json(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw PlanError(fmt::format("the plan is not JSON: byte {}", error.byte));
  } catch (const Json::exception&) {
    throw PlanError("the plan holds a number that is too large for a double");
  }
}

std::vector<PackedSequence> sequences_from_json(const Json& json) {
  std::vector<PackedSequence> sequences;
  for (const Json& item : field<std::vector<Json>>(json, "sequences")) {
    sequences.push_back({integer<std::int64_t>(field<Json>(item, "tokens"), "tokens"),
                         integers<std::int64_t>(item, "sample_tokens")});
  }
  return sequences;
}

Json derived_to_json(const PoolPlan& plan) {
  return {{"workers", plan.workers()},
          {"load", plan.placement.load},
          {"cap", plan.placement.cap},
          {"max_over_mean", plan.placement.max_over_mean()},
          {"tiles_moved", plan.tiles_moved()},
          {"bytes_bound", forward_bytes_bound(plan)},
          {"bytes_over_bound", bytes_over_bound(plan)},
          {"fetches", fetches_to_json(plan.exchange.fetches)},
          {"q_moves", moves_to_json(plan.exchange.q_moves)},
          {"kv_moves", moves_to_json(plan.exchange.kv_moves)},
          {"kv_copies", moves_to_json(plan.exchange.kv_copies)},
          {"memory", memory_to_json(plan)}};
}

}  // namespace

std::string plan_to_json(const PoolPlan& plan) {
  Json json;
  json["format"] = "libra-plan-3";
  json["fingerprint"] = fmt::format("{:016x}", plan_fingerprint(plan));
  json["options"] = options_to_json(plan.options);
  for (const PackedSequence& sequence : plan.sequences) {
    json["sequences"].push_back(
        {{"tokens", sequence.tokens}, {"sample_tokens", sequence.sample_tokens}});
  }
  json["block_costs"] = Json::array();
  for (const Block& block : plan.tiling.blocks) json["block_costs"].push_back(block.cost);
  json["destination"] = plan.placement.destination;
  json["derived"] = derived_to_json(plan);
  return json.dump(1);
}

PoolPlan plan_from_json(std::string_view text) {
  const Json json = parse_json(text);
  if (!json.is_object() || !json.contains("format") || json["format"] != "libra-plan-3") {
    throw PlanError("this JSON is not a plan: its 'format' is not libra-plan-3");
  }
  PoolPlan plan = rebuild_plan(
      options_from_json(field<Json>(json, "options")), sequences_from_json(json),
      integers<std::int64_t>(json, "block_costs"), integers<std::int32_t>(json, "destination"));
  if (field<std::string>(json, "fingerprint") != fmt::format("{:016x}", plan_fingerprint(plan))) {
    throw PlanError("the plan's fingerprint does not match: it is damaged, or of another version");
  }
  require_valid(plan);
  return plan;
}

std::vector<std::string> wrong_derived_fields(std::string_view text) {
  const Json expected = derived_to_json(plan_from_json(text));
  const Json json = parse_json(text);
  const Json found = json.contains("derived") ? json["derived"] : Json::object();
  std::vector<std::string> wrong;
  for (const auto& [name, value] : expected.items()) {
    if (!found.is_object() || !found.contains(name) || found[name] != value) wrong.push_back(name);
  }
  return wrong;
}

}  // namespace libra
