// What a command has found: text for people on standard output, JSON for programs in a file, and
// what else it writes. All of it comes at the end or, after an error, nothing.
//
//   Report report(console, options.json);   // opens the file, before any long work
//   report.add_file(options.save);          // likewise
//   report.text() << "...\n";
//   report.write(options.save, plan);
//   report.finish(json);
//
// With `--json -` the JSON takes standard output, and the text is left out.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "libra/cli/console.h"
#include "libra/cli/output_file.h"

namespace libra::cli {

using Json = nlohmann::ordered_json;

class Report {
 public:
  /// `json_target`: a path, "-", or empty for none. Throws InputError if it cannot be written.
  /// `console` must outlive the report.
  Report(const Console& console, const std::string& json_target);

  /// Opens one more file; nothing if `path` is empty. Throws InputError if it cannot be written or
  /// is among the report's files already.
  void add_file(const std::string& path);

  /// The content of an added file; nothing if `path` is empty. Throws InputError if it cannot be
  /// written.
  void write(const std::string& path, std::string_view content);

  /// Printed by finish().
  std::ostream& text() { return text_; }

  /// Writes the JSON where it is wanted, gives all files their names, then prints. Every added file
  /// must have been written. Throws InputError if a file cannot be written.
  void finish(const Json& json);

 private:
  struct File {
    std::string path;
    std::unique_ptr<OutputFile> file;
  };

  const Console& console_;
  bool json_on_out_;
  std::string json_path_;  // empty: in no file
  std::vector<File> files_;
  std::ostringstream text_;
};

}  // namespace libra::cli
