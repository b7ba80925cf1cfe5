#include "libra/cli/plan_file.h"

#include <filesystem>
#include <span>

#include "libra/base/error.h"
#include "libra/base/file.h"
#include "libra/plan/plan_binary.h"
#include "libra/plan/plan_json.h"

namespace libra::cli {
namespace {

bool is_json(const std::string& bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string::npos && bytes[first] == '{';
}

PoolPlan decode(const std::string& bytes) {
  return is_json(bytes) ? plan_from_json(bytes) : decode_plan(std::as_bytes(std::span(bytes)));
}

// What `use` makes of the file's bytes; its errors get the path.
template <typename Use>
auto with_path(const std::string& path, const Use& use) {
  const std::string bytes = read_file(path, "a plan");
  try {
    return use(bytes);
  } catch (const Error& error) {
    throw InputError(path, error.what());
  }
}

}  // namespace

std::string encode_plan_file(const PoolPlan& plan, const std::string& path) {
  if (std::filesystem::path(path).extension() == ".json") return plan_to_json(plan) + '\n';
  const std::vector<std::byte> bytes = encode_plan(plan);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

PoolPlan read_plan_file(const std::string& path) { return with_path(path, decode); }

std::vector<Violation> violations_of_file(const std::string& path) {
  return with_path(path, [](const std::string& bytes) {
    std::vector<Violation> violations = validate(decode(bytes));
    if (!is_json(bytes)) return violations;
    for (const std::string& field : wrong_derived_fields(bytes)) {
      violations.push_back({"derived", "'" + field + "' does not follow from the plan"});
    }
    return violations;
  });
}

}  // namespace libra::cli
