// Reads document lengths from the .idx file of a Megatron data set (the .bin file is not needed).
//
// Little-endian, without padding, so that the 64-bit arrays are not aligned:
//   "MMIDIDX\0\0" | u64 version 1 | u8 dtype code | u64 S | u64 D | i32[S] lengths |
//   i64[S] byte pointers | i64[D] document indices: document i is sequences [index i, index i + 1)
// S sequences, D - 1 documents; the indices begin with 0 and end with S.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libra/corpus/corpus.h"

namespace libra {

/// How every such file begins.
inline constexpr std::string_view kIdxMagic{"MMIDIDX\0\0", 9};

/// One length per document (the sum of its sequences), or per sequence. The byte pointers, and the
/// modes that multimodal data sets append (one byte per sequence), are stepped over.
/// Throws InputError for another version, an unknown dtype code, counts that do not agree with the
/// file's size, document indices that decrease or do not run from 0 to S, and negative lengths.
std::vector<std::int64_t> read_idx(const std::string& path, IdxUnit unit);

}  // namespace libra
