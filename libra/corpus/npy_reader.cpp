#include "libra/corpus/npy_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <limits>

#include "libra/base/error.h"
#include "libra/corpus/length_collector.h"
#include "libra/corpus/npy_header.h"
#include "libra/corpus/source_file.h"

namespace libra {
namespace {

struct IntegerType {
  bool is_signed = false;
  std::int64_t bytes = 0;
  std::endian order = std::endian::little;
};

std::string kind_of_type(std::string_view descr) {
  if (descr.starts_with("[")) return "records";
  switch (descr.size() > 1 ? descr[1] : '?') {
    case 'f':
      return "floating-point numbers";
    case 'O':
      return "Python objects";
    case 'b':
      return "booleans";
    case 'c':
      return "complex numbers";
    case 'S':
    case 'U':
      return "strings";
    default:
      return "no integers";
  }
}

IntegerType integer_type(const NpyHeader& header, const std::string& path) {
  const std::string_view descr = header.descr;
  const bool shaped = descr.size() == 3 && std::string_view("<>|=").find(descr[0]) < 4;
  const bool integer =
      shaped && (descr[1] == 'i' || descr[1] == 'u') && std::string_view("1248").find(descr[2]) < 4;
  if (!integer) {
    throw InputError(path, fmt::format("holds {} (dtype {}): lengths must be integers, as in "
                                       "numpy.save(path, lengths.astype('int64'))",
                                       kind_of_type(descr), in_quotes(descr)));
  }
  const std::endian order = descr[0] == '>'   ? std::endian::big
                            : descr[0] == '<' ? std::endian::little
                                              : std::endian::native;
  return {descr[1] == 'i', descr[2] - '0', order};
}

// The order flag of a one-dimensional array says nothing, so it is not looked at.
std::int64_t checked_count(const NpyHeader& header, const SourceFile& file,
                           std::int64_t element_bytes) {
  if (header.shape.size() != 1) {
    throw InputError(file.path(),
                     fmt::format("has {} dimensions, shape ({}): one is needed, tokens per "
                                 "document",
                                 header.shape.size(), fmt::join(header.shape, ", ")));
  }
  const std::int64_t count = header.shape[0];
  const std::int64_t available = file.size_bytes() - header.data_offset;
  if (count > available / element_bytes || count * element_bytes != available) {
    throw InputError(
        file.path(),
        fmt::format("is {}: its header promises {} elements of {} bytes, {} bytes follow",
                    count > available / element_bytes ? "truncated" : "too long", count,
                    element_bytes, available));
  }
  return count;
}

template <typename Int>
std::vector<std::int64_t> read_elements(SourceFile& file, std::int64_t offset, std::int64_t count,
                                        std::endian order) {
  LengthCollector found(file.path(), "row");
  found.reserve(count);
  std::int64_t row = 0;
  file.for_each_run(offset, count, sizeof(Int), [&](const char* data, std::int64_t elements) {
    for (std::int64_t i = 0; i < elements; ++i, ++row, data += sizeof(Int)) {
      found.add(+load<Int>(data, order), row);  // + : single bytes are numbers, not characters
    }
  });
  return std::move(found).take();
}

}  // namespace

std::vector<std::int64_t> read_npy(const std::string& path) {
  SourceFile file(path);
  const NpyHeader header = read_npy_header(file);
  const IntegerType type = integer_type(header, path);
  const std::int64_t count = checked_count(header, file, type.bytes);
  const auto read = [&](auto signed_zero, auto unsigned_zero) {
    return type.is_signed
               ? read_elements<decltype(signed_zero)>(file, header.data_offset, count, type.order)
               : read_elements<decltype(unsigned_zero)>(file, header.data_offset, count,
                                                        type.order);
  };
  switch (type.bytes) {
    case 1:
      return read(std::int8_t{}, std::uint8_t{});
    case 2:
      return read(std::int16_t{}, std::uint16_t{});
    case 4:
      return read(std::int32_t{}, std::uint32_t{});
    default:
      return read(std::int64_t{}, std::uint64_t{});
  }
}

}  // namespace libra
