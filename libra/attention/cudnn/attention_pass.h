// Forward or backward of one call: pieces, batches, graphs, tables, then everything enqueued.
//
// A tensor whose strides cuDNN takes is read or written where it is; others travel through packed
// copies in the scratch memory. In backward, LSE is always packed (cuDNN's workspace copies its
// layout), Q is unless it lies in place (packing.h), and gradients leave cuDNN packed, to be added
// to the caller's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "libra/attention/attention.h"
#include "libra/attention/cudnn/batches.h"
#include "libra/attention/cudnn/device_graphs.h"
#include "libra/attention/cudnn/gradient_plan.h"
#include "libra/attention/cudnn/kernels.h"
#include "libra/attention/cudnn/packing.h"
#include "libra/attention/cudnn/pieces.h"
#include "libra/attention/cudnn/ragged_tables.h"
#include "libra/attention/cudnn/scratch.h"

namespace libra::cudnn {

/// What a pass runs with.
struct Workplace {
  DeviceGraphs& graphs;
  Scratch& scratch;
  cudaStream_t stream;
  std::int64_t max_scratch_bytes;
  bool deterministic;
};

class AttentionPass {
 public:
  /// The arguments have been checked, and outlive this object.
  AttentionPass(const AttentionCall& call, const ForwardTensors& tensors, const Workplace& at);
  AttentionPass(const AttentionCall& call, const BackwardTensors& tensors, const Workplace& at);

  /// Throws before anything has been enqueued, unless the GPU fails.
  void run();

  /// Leaves nothing for run() to build, load or allocate. Writes scratch memory only.
  void rehearse();

  /// Builds the graphs of all roomy buckets with up to `max_rows` rows an entry.
  void warm_up(std::int64_t max_rows);

 private:
  enum class Role : std::uint8_t { kInput, kOutput, kGradient };

  struct Operand {
    Port port = Port::kQ;
    Role role = Role::kInput;
    Side side = Side::kQueries;
    TensorView view;
    DType dtype = DType::kBf16;  // as cuDNN sees it
    bool packed = false;         // travels packed
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

  // A batch with all that the host decides; places are bytes from the start of the scratch memory.
  struct Prepared {
    SdpaShape shape;
    RaggedTables tables;
    PerSide<Place> lengths{};
    PerPort<Place> offsets;
    PerPort<std::int64_t> packed;
    PerSide<Packing> packing;
    PerSide<PlacedPieces> pieces;
    PerSide<PlacedPlan> plans;
    std::int64_t workspace = 0;
    std::int64_t bytes = 0;
  };

  void add(Port port, Role role, Side side, const TensorView& view, bool packed = false);
  std::int32_t heads(Side side) const;
  std::int64_t packed_row(const Operand& operand) const;
  bool packs(Side side) const;
  bool is_dense(const Operand& operand) const;
  SdpaShape shape_of(Mask mask, const BatchShape& bucket) const;
  BatchRules rules() const;
  void add_workspace(BatchRules& rules) const;
  std::vector<Prepared> prepare_all();
  std::int64_t needed_bytes(const std::vector<Prepared>& batches) const;
  Prepared prepare(const Batch& batch) const;
  void prepare_packing(const Batch& batch, Prepared& result) const;
  void prepare_offsets(const Batch& batch, Prepared& result) const;
  void place_packed(const Batch& batch, Prepared& result) const;
  const std::byte* in_place(const Operand& operand, const Prepared& batch) const;
  PackedRows packed_rows(const Operand& operand, const Prepared& batch, std::byte* scratch) const;
  SdpaMemory memory_of(const Prepared& batch, std::byte* scratch) const;
  void gather(const Prepared& batch, std::byte* scratch) const;
  void distribute(const Prepared& batch, std::byte* scratch) const;
  void add_up(const Operand& operand, const Prepared& batch, std::byte* scratch) const;
  void enqueue(const Prepared& batch, std::byte* scratch) const;
  void send(const RaggedTables& tables, std::byte* scratch) const;
  void clear_keyless(const std::vector<KeylessRows>& keyless, std::byte* scratch) const;

  const AttentionCall& call_;
  Pass pass_;
  Workplace at_;
  std::vector<Operand> operands_;
  std::vector<Entry> pieces_;
  std::vector<KeylessRows> keyless_;
};

}  // namespace libra::cudnn
