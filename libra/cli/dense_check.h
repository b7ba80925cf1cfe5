// The yardstick of `run --check`: plain attention of whole samples, without tiles, placement or
// exchange, on the same inputs.
//
// fp64 must agree within 1e-10. Lower precision is judged by what rounding costs even without us:
// its error against fp64 may be at most twice that of plain attention in the same precision, or one
// unit in the last place of the output's largest value if that is more: plain attention can be
// exact by luck.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "libra/attention/attention.h"
#include "libra/corpus/packed_sequence.h"
#include "libra/runtime/worker_run.h"

namespace libra::cli {

/// Largest absolute errors, by output.
struct OutputErrors {
  static constexpr std::array<std::string_view, 5> kNames = {"o", "lse", "dq", "dk", "dv"};
  std::array<double, 5> largest{};  ///< in the order of kNames; infinite if something is NaN
};

class DenseCheck {
 public:
  /// Computes the yardstick, each sequence on a thread of its own. `backend` must outlive it.
  DenseCheck(AttentionBackend& backend, const std::vector<PackedSequence>& sequences,
             const std::vector<SequenceTensors>& inputs, double softmax_scale);

  /// What a run may err by.
  const OutputErrors& allowed() const { return allowed_; }

  /// What it errs by. `outputs`: by sequence.
  OutputErrors errors(const std::vector<LayerOutputs>& outputs);

 private:
  AttentionBackend& backend_;
  std::vector<LayerOutputs> exact_;
  OutputErrors allowed_;
};

/// Whether every error is allowed.
bool within(const OutputErrors& errors, const OutputErrors& allowed);

}  // namespace libra::cli
