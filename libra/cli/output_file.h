// A file that is there completely or not at all.
//
//   OutputFile file("plan.bin");   // fails here if it cannot be written, before any long work
//   file.commit(text);
//
// It is written beside its target and renamed; without commit() nothing remains. A target that is
// no regular file (a pipe, /dev/null) is written to directly.
#pragma once

#include <string>
#include <string_view>

namespace libra::cli {

class OutputFile {
 public:
  /// Throws InputError with the path and the system's reason.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Throws InputError as the constructor does. At most once.
  void commit(std::string_view content);

 private:
  std::string path_;       // as given, for messages
  std::string target_;     // symbolic links followed
  std::string temporary_;  // empty once renamed or removed; the target if written directly
};

}  // namespace libra::cli
