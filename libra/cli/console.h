// Where a command writes, given to it by its caller: the program passes its standard streams, tests
// pass strings.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

namespace libra::cli {

class MpiJob;

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;  ///< only then is progress shown
  MpiJob* mpi = nullptr;         ///< set if this process is one rank of an MPI job (mpi_job.h)
};

/// "packing 3/10" on a line of its own that is overwritten, and gone at the end. Shows nothing
/// unless the console's err is a terminal.
class Progress {
 public:
  /// `console` must outlive it.
  Progress(const Console& console, std::string what, std::int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One of `total` steps is done.
  void advance();

 private:
  void show();

  const Console& console_;
  std::string what_;
  std::int64_t total_;
  std::int64_t done_ = 0;
};

}  // namespace libra::cli
