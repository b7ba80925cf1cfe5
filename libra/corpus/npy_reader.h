// Reads document lengths from a NumPy .npy file: numpy.save("lengths.npy", lengths).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace libra {

/// How every NPY file begins.
inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// One length per element of a one-dimensional array of any integer type (i1 to i8, u1 to u8,
/// either byte order; format versions 1 to 3).
/// Throws InputError for every other array (it names the type or the shape and how to convert), for
/// a file shorter or longer than its header says, and for a negative or absurd length (it names the
/// row, from 0).
std::vector<std::int64_t> read_npy(const std::string& path);

}  // namespace libra
