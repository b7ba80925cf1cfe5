// docs/cli.md lists every field of the JSON reports, and none besides.
#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "libra/cli/test_program.h"

namespace libra::cli {
namespace {

using Fields = std::set<std::string>;

// Names in backticks in the first column of the tables under this heading, each after `prefix`.
Fields documented(const std::string& heading, const std::string& prefix = "") {
  std::ifstream file(std::string(LIBRA_DOCS_DIR) + "/cli.md");
  Fields fields;
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind('#', 0) == 0) here = line == heading;
    if (!here || line.rfind("| `", 0) != 0) continue;
    const std::string cell = line.substr(1, line.find('|', 1) - 1);
    for (std::size_t begin = cell.find('`'); begin != std::string::npos;) {
      const std::size_t end = cell.find('`', begin + 1);
      fields.insert(prefix + cell.substr(begin + 1, end - begin - 1));
      begin = cell.find('`', end + 1);
    }
  }
  EXPECT_FALSE(fields.empty()) << heading;
  return fields;
}

// Objects whose keys are names of placers, methods or figures.
bool holds_names(const std::string& prefix) {
  return prefix == "placers." || prefix == "methods." || prefix == "figures." ||
         prefix == "doing_nothing.";
}

// "a.b" for {"a": {"b": ...}}; every placer's, method's or figure's name becomes NAME.
void add_fields(const nlohmann::json& json, const std::string& prefix, Fields& fields) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = prefix + (holds_names(prefix) ? "NAME" : key);
    if (value.is_object()) {
      add_fields(value, name + ".", fields);
    } else {
      fields.insert(name);
    }
  }
}

Fields emitted(const std::vector<nlohmann::json>& reports) {
  Fields fields;
  for (const nlohmann::json& report : reports) add_fields(report, "", fields);
  return fields;
}

Fields joined(const std::vector<Fields>& parts) {
  Fields all;
  for (const Fields& part : parts) all.insert(part.begin(), part.end());
  return all;
}

// With a placer that is left out.
std::string job() {
  return "--corpus " + mix() +
         " --seq-len 256K --oversize truncate --gbs 2 --dp 2 --pool 2 --cp 3 "
         "--placer ulysses,balanced ";
}

TEST(JsonFieldsTest, ThoseOfPlanAreTheDocumentedOnes) {
  EXPECT_EQ(emitted({json_of("plan --steps 1 " + job())}),
            joined({documented("### JSON of `plan` and `run`"), documented("### JSON of `plan`"),
                    documented("### JSON of a placer in `plan`", "placers.NAME.")}));
}

TEST(JsonFieldsTest, ThoseOfRunAreTheDocumentedOnes) {
  EXPECT_EQ(
      emitted({json_of(
          "run --check --scale-lengths 1/2048 --q-heads 8 --kv-heads 2 --head-dim 16 " + job())}),
      joined({documented("### JSON of `plan` and `run`"), documented("### JSON of `run`"),
              documented("### JSON of a placer in `run`", "placers.NAME.")}));
}

// With a method that is left out.
std::string training_job() {
  return "--corpus " + mix() +
         " --seq-len 64K --oversize split --gpus 6 --cp 3 --gbs 2 --steps 1 --layers 4 --chunks 4 ";
}

TEST(JsonFieldsTest, ThoseOfSimulateAreTheDocumentedOnes) {
  EXPECT_EQ(
      emitted({json_of("simulate --methods ulysses,libra " + training_job())}),
      joined({documented("### JSON of `simulate` and `tune`"), documented("### JSON of `simulate`"),
              documented("### JSON of a method in `simulate`", "methods.NAME.")}));
}

TEST(JsonFieldsTest, ThoseOfTuneAreTheDocumentedOnes) {
  const std::string job = "--corpus " + mix() +
                          " --seq-len 64K --oversize split --gpus 6 --cp 3 --gbs 2 --steps 1 "
                          "--layers 4";
  EXPECT_EQ(
      emitted({json_of("tune " + job)}),
      joined({documented("### JSON of `simulate` and `tune`"), documented("### JSON of `tune`"),
              documented("### JSON of a candidate in `tune`", "best.")}));
}

TEST(JsonFieldsTest, ThoseOfPaperAreTheDocumentedOnes) {
  EXPECT_EQ(emitted({json_of("paper --figures 8 --steps 1")}), documented("### JSON of `paper`"));
}

}  // namespace
}  // namespace libra::cli
