// What a command has found: text for people on standard output, JSON for programs in a file.
//
//   Report report(console, options.json);   // opens the file, before any long work
//   report.text() << "...\n";
//   report.finish(json);
//
// With `--json -` the JSON takes standard output, and the text is left out.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "libra/cli/console.h"
#include "libra/cli/output_file.h"

namespace libra::cli {

using Json = nlohmann::ordered_json;

class Report {
 public:
  /// `json_target`: a path, "-", or empty for none. Throws InputError if it cannot be written.
  /// `console` must outlive the report.
  Report(const Console& console, const std::string& json_target);

  std::ostream& text() { return json_on_out_ ? nowhere_ : console_.out; }

  /// Writes the JSON where it is wanted.
  void finish(const Json& json);

 private:
  const Console& console_;
  bool json_on_out_;
  std::unique_ptr<OutputFile> file_;
  std::ostream nowhere_{nullptr};
};

}  // namespace libra::cli
