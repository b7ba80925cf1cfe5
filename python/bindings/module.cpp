#include <nanobind/nanobind.h>

#include "libra/base/version.h"
#include "python/bindings/bindings.h"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  using namespace libra::python;
  module.doc() = "Libra's C++ core: plans, sampling and the runtime. Use it through `libra`.";
  module.attr("__version__") = libra::kVersion;
  nb::set_leak_warnings(false);  // what a trainer still holds at exit is no fault
  bind_errors(module);
  bind_options(module);
  bind_plans(module);
  bind_pools(module);
  bind_corpus(module);
  bind_runtime(module);
  bind_sampling(module);
}
