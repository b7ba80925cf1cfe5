// The header of a NPY file: what its array holds, and where.
//
// Format (numpy.lib.format): "\x93NUMPY", version (major, minor), the header's length (u16 in
// version 1, u32 in 2 and 3, little-endian), then a Python dictionary literal:
//   {'descr': '<u4', 'fortran_order': False, 'shape': (99484,), }
//
// Used by npy_reader only; not installed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libra/corpus/source_file.h"

namespace libra {

struct NpyHeader {
  std::string descr;  ///< as written, without its quotes; "[" and what follows for a record type
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::int64_t data_offset = 0;  ///< of the first element, in bytes
};

/// Throws InputError if the file is no NPY file of version 1 to 3, or its header is damaged.
NpyHeader read_npy_header(SourceFile& file);

/// Only the dictionary; data_offset stays 0. Throws InputError that names `path`.
NpyHeader parse_npy_dictionary(std::string_view text, const std::string& path);

}  // namespace libra
