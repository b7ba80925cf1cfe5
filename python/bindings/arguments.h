// What a function of the package is given, taken by name. nanobind's own words for a name that is
// not there, or a value of another type, would be the whole signature on several lines.
//
//   Arguments given("PackedSequence", {"tokens", "sample_tokens"}, positional, keywords);
//   const auto tokens = given.required<std::int64_t>("tokens");
//   const auto rest = given.optional<Lengths>("sample_tokens", {});
//   given.check_all_taken();
//
// Everything throws ConfigError.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace libra {
struct PackedSequence;
struct PlanOptions;
}  // namespace libra

namespace libra::python {

/// "WHERE cannot take NAME=VALUE, a TYPE: it must be WANTED", as an error.
[[noreturn]] void refuse(std::string_view where, std::string_view name,
                         const nanobind::object& value, const std::string& wanted);

/// What a C++ type is in Python, in words.
template <typename T>
struct Wanted;

template <>
struct Wanted<bool> {
  static std::string words() { return "True or False"; }
};
template <>
struct Wanted<std::int32_t> {
  static std::string words() { return "an int up to 2147483647"; }
};
template <>
struct Wanted<std::int64_t> {
  static std::string words() { return "an int"; }
};
template <>
struct Wanted<double> {
  static std::string words() { return "a float"; }
};
template <>
struct Wanted<std::string> {
  static std::string words() { return "a str"; }
};
template <>
struct Wanted<PlanOptions> {
  static std::string words() { return "libra.PlanOptions"; }
};
template <>
struct Wanted<std::vector<std::int64_t>> {
  static std::string words() { return "a sequence of ints"; }
};
template <>
struct Wanted<std::vector<PackedSequence>> {
  static std::string words() { return "a sequence of libra.PackedSequence"; }
};
template <typename T>
struct Wanted<std::optional<T>> {
  static std::string words() { return Wanted<T>::words() + " or None"; }
};

class Arguments {
 public:
  /// `positional` are the first of `names` in order.
  Arguments(std::string_view where, std::initializer_list<const char*> names,
            const nanobind::args& positional, const nanobind::kwargs& keywords);

  template <typename T>
  T required(const char* name) {
    if (!has(name)) refuse_missing(name);
    return taken<T>(name, Wanted<T>::words());
  }

  template <typename T>
  T optional(const char* name, T preset) {
    return has(name) ? taken<T>(name, Wanted<T>::words()) : preset;
  }

  /// With words of its own.
  template <typename T>
  T optional(const char* name, T preset, const std::string& wanted) {
    return has(name) ? taken<T>(name, wanted) : preset;
  }

  void check_all_taken() const;

 private:
  bool has(const char* name);
  [[noreturn]] void refuse_missing(const char* name) const;

  template <typename T>
  T taken(const char* name, const std::string& wanted) {
    const nanobind::object value = given_[name];
    nanobind::del(given_[name]);
    T result{};
    if (nanobind::try_cast<T>(value, result)) return result;
    refuse(where_, name, value, wanted);
  }

  std::string_view where_;
  nanobind::dict given_;
  nanobind::list asked_;  // names that the function has
};

}  // namespace libra::python
