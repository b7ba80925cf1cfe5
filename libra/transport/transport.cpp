#include "libra/transport/transport.h"

#include <fmt/format.h>

#include <string_view>

#include "libra/base/check.h"

namespace libra {

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kAgree:
      return "agreement on the plan";
    case Phase::kForwardDispatch:
      return "forward dispatch";
    case Phase::kForwardReturn:
      return "forward return";
    case Phase::kBackwardDispatch:
      return "backward dispatch";
    case Phase::kBackwardReturn:
      return "backward return";
    case Phase::kGradientReturn:
      return "gradient return";
  }
  LIBRA_CHECK(false, "phase {} has no name", static_cast<int>(phase));
  return {};
}

std::string describe(const Tag& tag) {
  return fmt::format("step {}, {}, chunk {}, round {}", tag.step, phase_name(tag.phase), tag.chunk,
                     tag.round);
}

}  // namespace libra
