#include "libra/cli/report.h"

#include <algorithm>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/error.h"

namespace libra::cli {

Report::Report(const Console& console, const std::string& json_target)
    : console_(console), json_on_out_(json_target == "-") {
  if (!json_on_out_) json_path_ = json_target;
  add_file(json_path_);
}

void Report::add_file(const std::string& path) {
  if (path.empty()) return;
  auto file = std::make_unique<OutputFile>(path);
  for (const File& other : files_) {
    if (file->same_target(*other.file)) {
      throw InputError(path, "is named for two outputs: give each a file of its own");
    }
  }
  files_.push_back({path, std::move(file)});
}

void Report::write(const std::string& path, std::string_view content) {
  if (path.empty()) return;
  const auto found = std::find_if(files_.begin(), files_.end(),
                                  [&path](const File& file) { return file.path == path; });
  LIBRA_CHECK(found != files_.end(), "{} was not added to the report", path);
  found->file->write(content);
}

void Report::finish(const Json& json) {
  const std::string text = json.dump(1) + '\n';
  write(json_path_, text);
  for (const File& file : files_) file.file->commit();
  console_.out << (json_on_out_ ? text : text_.str());
}

}  // namespace libra::cli
