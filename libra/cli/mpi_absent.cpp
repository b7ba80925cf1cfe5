#include "libra/base/error.h"
#include "libra/cli/mpi_job.h"

namespace libra::cli {

std::unique_ptr<MpiJob> start_mpi_job() {
  throw ConfigError(
      "--transport mpi: this program was built without MPI: use --transport inproc, or install "
      "OpenMPI and build with LIBRA_WITH_MPI=ON");
}

}  // namespace libra::cli
