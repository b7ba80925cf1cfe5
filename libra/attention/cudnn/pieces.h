// Cuts a call's entries into pieces that cuDNN runs fast and gets right.
//
//   forward     full rectangles, and bottom-right causal pieces with at least as many keys as
//               queries; rows without a key are listed apart
//   backward    full rectangles and top-left causal squares: bottom-right causal kernels compute
//               masked tiles, too, at half the speed
//
// In backward, entries that continue each other become one before that: the square and the
// rectangle of a block, and the blocks of a sample that lie side by side: 532 TFLOP/s instead of
// 496 at 4 heads a call and blocks of 4096. Forward is faster in blocks: 644 against 604.
//
// A piece is an Entry whose heads have the call's shift added; it has queries and keys.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/attention/attention.h"

namespace libra::cudnn {

/// Query rows that see no key, in all heads of the call from `head` on.
struct KeylessRows {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int32_t head = 0;

  friend bool operator==(const KeylessRows&, const KeylessRows&) = default;
};

struct ForwardPieces {
  std::vector<Entry> pieces;
  std::vector<KeylessRows> keyless;
};

ForwardPieces forward_pieces(const AttentionCall& call);

std::vector<Entry> backward_pieces(const AttentionCall& call);

/// The piece as two or three smaller ones that cover the same pairs. Requires a backward piece with
/// at least 2 queries or keys. Cuts are multiples of 128 rows where the piece is larger than that.
std::vector<Entry> halves(const Entry& piece);

/// Query-key pairs of a piece.
std::int64_t num_pairs(const Entry& piece);

}  // namespace libra::cudnn
