// Forward or backward of one call: prepared, if no earlier call was like it, then enqueued.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "libra/attention/attention.h"
#include "libra/attention/cudnn/device_graphs.h"
#include "libra/attention/cudnn/kernels.h"
#include "libra/attention/cudnn/pass_key.h"
#include "libra/attention/cudnn/prepared_pass.h"
#include "libra/attention/cudnn/prepared_passes.h"
#include "libra/attention/cudnn/scratch.h"

namespace libra::cudnn {

/// What a pass runs with.
struct Workplace {
  DeviceGraphs& graphs;
  PreparedPasses& passes;
  Scratch& scratch;
  cudaStream_t stream;
  PassOptions options;
};

class AttentionPass {
 public:
  /// The arguments have been checked.
  AttentionPass(const AttentionCall& call, const ForwardTensors& tensors, const Workplace& at);
  AttentionPass(const AttentionCall& call, const BackwardTensors& tensors, const Workplace& at);

  /// Throws before anything has been enqueued, unless the GPU fails.
  void run();

  /// Leaves nothing for run() to build, load or allocate. Writes scratch memory only.
  void rehearse();

 private:
  /// Where a batch's tables and its scratch memory are.
  struct Memory {
    const std::byte* tables;
    std::byte* scratch;
  };

  AttentionPass(Pass pass, const AttentionCall& call, const PassTensors& tensors,
                const Workplace& at);

  const KeptPass& get_ready();  // from here on the stream is behind all earlier calls
  std::int32_t heads(Side side) const;
  std::byte* in_place(const Operand& operand, const PreparedBatch& batch) const;
  PackedRows packed_rows(const Operand& operand, const PreparedBatch& batch,
                         const Memory& memory) const;
  SdpaMemory sdpa_memory(const PreparedBatch& batch, const Memory& memory) const;
  void gather(const PreparedBatch& batch, const Memory& memory) const;
  void distribute(const PreparedBatch& batch, const Memory& memory) const;
  void add_up(const Operand& operand, const PreparedBatch& batch, const Memory& memory) const;
  void enqueue(const PreparedBatch& batch, const Memory& memory) const;
  void run_over_nothing(const PreparedBatch& batch, std::byte* scratch) const;
  void clear_keyless(const std::byte* tables) const;

  PassKey key_;
  float scale_;
  PassTensors tensors_;
  Workplace at_;
  const PreparedPass* pass_ = nullptr;
};

}  // namespace libra::cudnn
