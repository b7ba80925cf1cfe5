#include "libra/cli/plan_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include "libra/base/error.h"
#include "libra/plan/plan_binary.h"
#include "libra/plan/plan_json.h"

namespace libra::cli {
namespace {

std::string read_all(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) {
    throw InputError(path, std::string("cannot be read: ") + std::strerror(errno));
  }
  return bytes;
}

PoolPlan decode(const std::string& bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && bytes[first] == '{') return plan_from_json(bytes);
  return decode_plan(std::as_bytes(std::span(bytes)));
}

}  // namespace

std::string encode_plan_file(const PoolPlan& plan, const std::string& path) {
  if (std::filesystem::path(path).extension() == ".json") return plan_to_json(plan) + '\n';
  const std::vector<std::byte> bytes = encode_plan(plan);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

PoolPlan read_plan_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw InputError(path, "is a folder: give the file of a plan");
  }
  const std::string bytes = read_all(path);
  try {
    return decode(bytes);
  } catch (const Error& error) {
    throw InputError(path, error.what());
  }
}

}  // namespace libra::cli
