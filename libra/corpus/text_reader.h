// Reads document lengths from a text file: one integer a line.
//
//   # tokens per document
//   512
//   89
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace libra {

/// Blank lines and lines that begin with # are skipped; white space around a number is ignored.
/// Throws InputError with the line's number (from 1) and its text for anything else.
std::vector<std::int64_t> read_text(const std::string& path);

}  // namespace libra
