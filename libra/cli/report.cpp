#include "libra/cli/report.h"

namespace libra::cli {

Report::Report(const Console& console, const std::string& json_target)
    : console_(console), json_on_out_(json_target == "-") {
  if (!json_target.empty() && !json_on_out_) file_ = std::make_unique<OutputFile>(json_target);
}

void Report::finish(const Json& json) {
  if (json_on_out_) console_.out << json.dump(1) << '\n';
  if (file_) file_->commit(json.dump(1) + '\n');
}

}  // namespace libra::cli
