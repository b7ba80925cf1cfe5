#include <fmt/format.h>

#include <array>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/corpus/packing.h"

namespace libra {
namespace {

template <typename Enum>
struct Named {
  Enum value;
  std::string_view name;
};

constexpr std::array<Named<Packing>, 3> kPackings = {
    {{Packing::kFirstFit, "first-fit"},
     {Packing::kBestFitDecreasing, "best-fit-decreasing"},
     {Packing::kConcat, "concat"}}};

constexpr std::array<Named<Oversize>, 4> kOversizes = {{{Oversize::kError, "error"},
                                                        {Oversize::kTruncate, "truncate"},
                                                        {Oversize::kSplit, "split"},
                                                        {Oversize::kDrop, "drop"}}};

template <typename Table, typename Enum>
std::string_view name_of(const Table& table, Enum value) {
  for (const auto& entry : table) {
    if (entry.value == value) return entry.name;
  }
  LIBRA_CHECK(false, "value {} has no name", static_cast<int>(value));
  return {};
}

}  // namespace

std::string_view packing_name(Packing packing) { return name_of(kPackings, packing); }
std::string_view oversize_name(Oversize oversize) { return name_of(kOversizes, oversize); }

Packing parse_packing(std::string_view name) {
  for (const auto& entry : kPackings) {
    if (entry.name == name) return entry.value;
  }
  throw ConfigError(
      fmt::format("no packing '{}': first-fit, best-fit-decreasing and concat are there", name));
}

Oversize parse_oversize(std::string_view name) {
  for (const auto& entry : kOversizes) {
    if (entry.name == name) return entry.value;
  }
  throw ConfigError(
      fmt::format("no oversize policy '{}': error, truncate, split and drop are there", name));
}

}  // namespace libra
