// Reads document lengths from JSON lines: one object a line, as data sets for training are saved.
//
//   {"length": 512}                       one document of 512 tokens
//   {"seq_lengths": [100, 0, 412]}        three documents
//   {"input_ids": [5, 17, 9]}             one document of 3 tokens
//
// The first of these keys, in this order, counts; other keys are ignored and nothing but the line
// at hand is kept in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace libra {

/// Empty lines are skipped. Throws InputError with the line's number (from 1) for a line that is no
/// JSON object, has none of the keys, or has a value of another type there.
std::vector<std::int64_t> read_jsonl(const std::string& path);

}  // namespace libra
