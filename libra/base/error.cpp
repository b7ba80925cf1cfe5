#include "libra/base/error.h"

#include <utility>

namespace libra {

InputError::InputError(std::string where, const std::string& what_is_wrong)
    : Error(where + ": " + what_is_wrong), where_(std::move(where)) {}

}  // namespace libra
