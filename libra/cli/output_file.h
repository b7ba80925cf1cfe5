// A file that is there completely or not at all.
//
//   OutputFile file("plan.bin");   // fails here if it cannot be written, before any long work
//   file.write(text);
//   file.commit();                 // under its name only now
//
// It is written beside its target and renamed; without commit() nothing remains. A target that is
// no regular file (a pipe, /dev/null) is written to directly; it stays open from the beginning, so
// that whoever reads a pipe sees one stream.
#pragma once

#include <fstream>
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

  /// All of the content, once. Throws InputError as the constructor does.
  void write(std::string_view content);

  /// Gives the file its name. Requires write(). Throws InputError as the constructor does.
  void commit();

  /// Whether both would be the same file, whatever way it is named.
  bool same_target(const OutputFile& other) const { return target_ == other.target_; }

 private:
  std::string path_;       // as given, for messages
  std::string target_;     // absolute, symbolic links followed
  std::string temporary_;  // empty once renamed or removed, and if the target is written directly
  std::ofstream stream_;
};

}  // namespace libra::cli
