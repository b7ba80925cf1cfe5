// plan_seeds BINARY_FOLDER JSON_FOLDER: small plans to begin with. They are made, not kept, as a
// plan's fingerprint changes with the program's version.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "libra/plan/plan_binary.h"
#include "libra/plan/plan_json.h"
#include "libra/plan/random_plans.h"

namespace {

constexpr std::uint64_t kSeeds = 24;

void write(const std::string& path, const char* bytes, std::size_t size) {
  std::ofstream(path, std::ios::binary).write(bytes, static_cast<std::streamsize>(size));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: plan_seeds BINARY_FOLDER JSON_FOLDER\n");
    return 2;
  }
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto [options, sequences] = libra::testing::random_problem(seed, 20);
    const libra::PoolPlan plan = libra::make_plan(options, sequences);
    const auto bytes = libra::encode_plan(plan);
    write(fmt::format("{}/{}", argv[1], seed), reinterpret_cast<const char*>(bytes.data()),
          bytes.size());
    const std::string text = libra::plan_to_json(plan);
    write(fmt::format("{}/{}", argv[2], seed), text.data(), text.size());
  }
  return 0;
}
