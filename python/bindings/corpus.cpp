#include "libra/corpus/corpus.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libra/base/error.h"
#include "libra/base/units.h"
#include "python/bindings/bindings.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace libra::python {
namespace {

using Lengths = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

Lengths as_array(std::vector<std::int64_t> lengths) {
  auto owned = std::make_unique<std::vector<std::int64_t>>(std::move(lengths));
  auto* data = owned.get();
  nb::capsule owner(owned.release(), [](void* vector) noexcept {
    delete static_cast<std::vector<std::int64_t>*>(vector);
  });
  return Lengths(data->data(), {data->size()}, owner);
}

Lengths read(const std::string& spec, const std::string& idx_unit, std::int64_t documents,
             std::uint64_t seed) {
  const ReadOptions options{parse_idx_unit(idx_unit), documents, seed};
  std::vector<std::int64_t> lengths;
  {
    const nb::gil_scoped_release unlocked;
    lengths = read_corpus(spec, options).lengths;
  }
  return as_array(std::move(lengths));
}

}  // namespace

void bind_corpus(nb::module_& module) {
  module.def("read_lengths", &read, "spec"_a, nb::kw_only(), "idx_unit"_a = "documents",
             "synthetic_documents"_a = 1'000'000, "seed"_a = 0,
             "Tokens of each document, int64: of a .npy, a Megatron .idx, JSON lines, text, or "
             "synthetic:NAME. idx_unit: documents or sequences. Raises InputError for a file that "
             "is missing or damaged, with the place.");
  module.def("parse_size", &parse_size, "text"_a,
             "The number in a size as people write it: \"256K\" is 262144; K is 1024, M is 1024 K, "
             "in either case. Raises ConfigError for anything else.");
}

}  // namespace libra::python
