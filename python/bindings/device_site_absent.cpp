#include "libra/base/error.h"
#include "python/bindings/device_site.h"

namespace libra::python {

namespace {

[[noreturn]] void refuse() {
  throw ConfigError(
      "this build of Libra has no CUDA: keep tensors on the CPU, or install it where nvcc, cuDNN "
      "and cudnn-frontend are found");
}

}  // namespace

std::string new_nccl_id() { refuse(); }

std::unique_ptr<Site> make_device_site(const DevicePlace& /*place*/,
                                       const TransportOptions& /*options*/,
                                       const Kernels& /*kernels*/) {
  refuse();
}

}  // namespace libra::python
