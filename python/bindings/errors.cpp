#include <nanobind/nanobind.h>

#include <string>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "python/bindings/arguments.h"
#include "python/bindings/bindings.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace libra::python {
namespace {

template <typename Thrown>
nb::exception<Thrown> bind(nb::module_& module, const char* name, nb::handle base,
                           const char* doc) {
  nb::exception<Thrown> type(module, name, base);
  type.attr("__doc__") = doc;
  return type;
}

}  // namespace

// What is registered later is asked first, so the derived come after their base.
void bind_errors(nb::module_& module) {
  const nb::object base = bind<Error>(module, "Error", PyExc_RuntimeError,
                                      "What a caller, a file, a peer or the machine did wrong. The "
                                      "message is one line that says what would be right.");
  bind<ConfigError>(module, "ConfigError", base, "An option or argument that breaks a rule.");
  bind<InputError>(module, "InputError", base, "A file, or a value in it.");
  bind<PlanError>(module, "PlanError", base,
                  "A plan that is damaged, unknown, or not the one that the others hold.");
  bind<TransportError>(module, "TransportError", base,
                       "An exchange that failed: a peer died, disagrees, or did not come in time.");
  module.def(
      "refuse",
      [](const std::string& where, const std::string& name, const nb::object& value,
         const std::string& wanted) { refuse(where, name, value, wanted); },
      "where"_a, "name"_a, "value"_a.none(), "wanted"_a,
      nb::sig("def refuse(where: str, name: str, value: object, wanted: str) -> typing.NoReturn"),
      "Raises ConfigError: where cannot take name=value, which must be what is wanted.");
  bind<InternalError>(module, "InternalError", PyExc_AssertionError, "A bug in Libra.");
}

}  // namespace libra::python
