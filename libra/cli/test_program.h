// For this room's tests: the program called as a function, its output caught.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "libra/cli/cli.h"

namespace libra::cli {

struct Result {
  int code = 0;
  std::string out;
  std::string err;
};

/// `command` is split at blanks; `more` follows as it is (paths).
inline Result libra(const std::string& command, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments;
  std::istringstream words(command);
  for (std::string word; words >> word;) arguments.push_back(word);
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_cli(arguments, {out, err});
  return {code, out.str(), err.str()};
}

/// The JSON that a command with `--json -` printed, after checking that it went well.
inline nlohmann::json json_of(const std::string& command,
                              const std::vector<std::string>& more = {}) {
  const Result result = libra(command + " --json -", more);
  EXPECT_EQ(result.code, 0) << result.err;
  return result.code == 0 ? nlohmann::json::parse(result.out) : nlohmann::json();
}

/// Exit code 2, nothing on standard output, and one line of error that contains `wanted`.
inline void expect_refused(const Result& result, const std::string& wanted) {
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err.rfind("libra: error: ", 0), 0U) << result.err;
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << "not one line: " << result.err;
  EXPECT_NE(result.err.find(wanted), std::string::npos)
      << "wanted: " << wanted << "\nfound:  " << result.err;
}

/// The project's own corpus.
inline std::string mix() { return std::string(LIBRA_DATA_DIR) + "/mix.npy"; }

/// Options of a small job on `mix`: 16 sequences, 8 pools of 2 on 4 workers, 2 at once.
inline std::string small_job() {
  return "--corpus " + mix() +
         " --seq-len 256K --oversize truncate --gbs 16 --dp 4 --cp 2 --pool 2";
}

}  // namespace libra::cli
