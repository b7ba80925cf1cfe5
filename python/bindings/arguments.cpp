#include "python/bindings/arguments.h"

#include <fmt/format.h>

#include "libra/base/error.h"

namespace nb = nanobind;

namespace libra::python {
namespace {

constexpr std::size_t kLongestValue = 80;

std::string text_of(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }

std::string joined(const nb::list& names) { return text_of(nb::str(", ").attr("join")(names)); }

std::string represent(const nb::object& value) {
  std::string text = text_of(nb::str(" ").attr("join")(nb::repr(value).attr("split")()));
  if (text.size() > kLongestValue) text.replace(kLongestValue, std::string::npos, "...");
  return text;
}

std::string type_of(const nb::object& value) {
  if (value.is_none()) return "";
  const std::string name = text_of(value.type().attr("__name__"));
  const bool vowel = std::string_view("aeiouAEIOU").find(name.front()) != std::string_view::npos;
  return fmt::format(", {} {}", vowel ? "an" : "a", name);
}

}  // namespace

void refuse(std::string_view where, std::string_view name, const nb::object& value,
            const std::string& wanted) {
  throw ConfigError(fmt::format("{} cannot take {}={}{}: it must be {}", where, name,
                                represent(value), type_of(value), wanted));
}

Arguments::Arguments(std::string_view where, std::initializer_list<const char*> names,
                     const nb::args& positional, const nb::kwargs& keywords)
    : where_(where), given_(nb::borrow<nb::dict>(keywords.attr("copy")())) {
  if (positional.size() > names.size()) {
    throw ConfigError(fmt::format("{} takes {} by position, not {}: give the others by name", where,
                                  names.size() == 0 ? "nothing" : fmt::format("{}", names.size()),
                                  positional.size()));
  }
  const char* const* name = names.begin();
  for (const nb::handle value : positional) {
    if (given_.contains(*name)) {
      throw ConfigError(
          fmt::format("{} is given {} twice: by position, and by name", where, *name));
    }
    given_[*name++] = value;
  }
}

bool Arguments::has(const char* name) {
  asked_.append(name);
  return given_.contains(name);
}

void Arguments::refuse_missing(const char* name) const {
  throw ConfigError(
      fmt::format("{} needs {}, which is not there: see help(libra.{})", where_, name, where_));
}

void Arguments::check_all_taken() const {
  for (const auto& [name, unused] : given_) {
    const nb::object near =
        nb::module_::import_("difflib").attr("get_close_matches")(name, asked_, 1);
    throw ConfigError(fmt::format("{} takes no '{}': {}", where_, text_of(name),
                                  nb::len(near) > 0
                                      ? fmt::format("do you mean {}?", text_of(near[0]))
                                      : fmt::format("{} are there", joined(asked_))));
  }
}

}  // namespace libra::python
