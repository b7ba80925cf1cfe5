// One forward pass of one worker: what it computes for whom, and what it keeps. See chunked_pass.h
// for the order.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/runtime/chunked_pass.h"

namespace libra {

class ForwardPass final : public ChunkedPass {
 public:
  ForwardPass(const PassArguments& arguments, const ForwardTensors& own);

 private:
  static Legs legs_of(const PlanOptions& options, const ForwardTensors& own);
  std::vector<TensorView> outputs() const override { return {own_.o, own_.lse}; }
  void get_ready() override;
  void begin() override;
  void compute_local() override;
  void compute_chunk(std::int32_t chunk) override;
  void finish_chunk(std::int32_t) override {}
  void finish() override {}

  void attend(std::int32_t chunk);
  ForwardTensors tensors_of(const EntryGroup& group, std::int32_t chunk) const;
  void save_inputs(std::int32_t chunk);
  void save_results(std::int32_t chunk);
  void save(const Region& from, const Region& to, std::int32_t slot);

  ForwardTensors own_;
};

}  // namespace libra
