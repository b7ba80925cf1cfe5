// All that the host decides about a pass before it enqueues it: pieces, batches, packing, tables,
// graphs. A function of the key alone, so layers with one plan prepare once.
//
// A tensor whose strides cuDNN takes is read or written where it is; others travel through packed
// copies in the scratch memory. In backward, LSE is always packed (cuDNN's workspace copies its
// layout), and so are Q and gradients unless they lie in place (packing.h). Gradients that are
// added never do; of those that are written, dQ only if Q does.
//
// Tables are read by all layers' kernels and stay on the device (prepared_passes.h); scratch is
// used by one batch after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libra/attention/cudnn/batches.h"
#include "libra/attention/cudnn/device_graphs.h"
#include "libra/attention/cudnn/packing.h"
#include "libra/attention/cudnn/pass_key.h"
#include "libra/attention/cudnn/ragged_tables.h"

namespace libra::cudnn {

/// What is a backend's choice and not a call's.
struct PassOptions {
  std::int64_t max_scratch_bytes = 0;
  bool deterministic = false;
};

enum class Role : std::uint8_t { kInput, kOutput, kAdded };

/// One tensor of a pass.
struct Operand {
  Port port = Port::kQ;
  Role role = Role::kInput;
  Side side = Side::kQueries;
  DType dtype = DType::kBf16;  ///< as cuDNN sees it
  bool packed = false;         ///< travels packed
};

template <typename T>
struct PerSide {
  T queries, keys;
  const T& of(Side side) const { return side == Side::kQueries ? queries : keys; }
  T& of(Side side) { return side == Side::kQueries ? queries : keys; }
};

struct PlacedPieces {
  Place pieces = 0;
  std::int64_t count = 0, rows = 0;
};

struct PlacedPlan {
  Place segments = 0, sources = 0;
  std::int64_t num_segments = 0, rows = 0;
};

/// One cuDNN call. Places are bytes from the start of its tables; `packed` and `workspace` from the
/// start of the scratch memory.
struct PreparedBatch {
  SdpaShape shape;
  Place tables = 0;  ///< in the pass's
  std::int64_t table_bytes = 0;
  PerSide<Place> lengths{};
  PerPort<Place> offsets;
  PerPort<std::int64_t> packed;
  PerPort<bool> in_place;     ///< packed where it lies, from its side's origin on
  PerSide<PieceRows> origin;  ///< the caller's row and head of packed row 0
  PerSide<PlacedPieces> pieces;
  PerSide<PlacedPlan> plans;
  std::int64_t workspace = 0;
  std::int64_t bytes = 0;  ///< of scratch
};

struct PreparedPass {
  std::vector<Operand> operands;
  std::vector<PreparedBatch> batches;
  Place keyless = 0;  ///< KeylessRows
  std::int64_t num_keyless = 0;
  std::int64_t scratch_bytes = 0;
  std::vector<std::byte> tables;  ///< a multiple of 16
};

/// Builds graphs that are not there. Throws ConfigError if cuDNN has no kernel for the shape, or if
/// gradients are to be written that can't be.
PreparedPass prepare_pass(const PassKey& key, const PassOptions& options, DeviceGraphs& graphs);

/// Whether a backward pass can write its gradients: each entry is one piece that covers its rows on
/// both sides and fits the scratch memory.
bool can_write(const PassKey& key, const PassOptions& options);

/// Builds the graphs of all roomy buckets with up to `max_rows` rows an entry.
void build_graphs(const PassKey& key, const PassOptions& options, std::int64_t max_rows,
                  DeviceGraphs& graphs);

}  // namespace libra::cudnn
