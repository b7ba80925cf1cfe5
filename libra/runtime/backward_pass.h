// One backward pass of one worker: the gradients of what the forward pass computed, each brought to
// its home. See chunked_pass.h for the order.
//
// Gradients are accumulated in scratch and in the arena, in an order that depends on the plan
// alone: own work first, then what destinations send home, by destination. A relay does the same
// with the gradients of keys that it has passed on, and sends the sums home.
//
// Gradients of whole samples (whole_samples.h) have one source. Where the backend can, it writes
// them into the caller's rows; sums are cleared and converted for the other rows only. Where it
// cannot, it adds them to the sums like all others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libra/runtime/chunked_pass.h"

namespace libra {

class BackwardPass final : public ChunkedPass {
 public:
  BackwardPass(const PassArguments& arguments, const BackwardTensors& own, std::byte* scratch);

  /// Whether there are whole samples and the backend writes their gradients.
  bool writes() const { return writes_; }

 private:
  static Legs legs_of(const PlanOptions& options, const BackwardTensors& own);
  std::vector<TensorView> outputs() const override { return {own_.dq, own_.dk, own_.dv}; }
  void begin() override;
  void get_ready() override;
  void post_home_extra(std::int32_t chunk) override;
  void compute_local() override;
  void compute_chunk(std::int32_t chunk) override;
  void finish_chunk(std::int32_t chunk) override;
  void finish() override;

  /// Of the whole samples.
  const BackwardTensors& whole_tensors() const { return writes_ ? own_ : accumulating_; }
  void clear_key_gradients(std::int32_t kv_chunk);
  BackwardTensors tensors_of(const EntryGroup& group, std::int32_t chunk) const;
  void post_shares(std::int32_t kv_chunk);
  void add_shares(std::int32_t kv_chunk, Stream& used);
  void send_sums(std::int32_t kv_chunk);
  void post_key_gradients(std::int32_t kv_chunk, Stream& used);
  void post_lent_gradients(std::int32_t kv_chunk);
  void receive_key_gradients(Exchange& gradients, std::int32_t kv_chunk) const;
  void add_own_share(std::int32_t kv_chunk);
  void add_others_share(std::int32_t kv_chunk);
  /// Where the gradients of a move's keys lie in the arena.
  struct GradientRows {
    const Region& dk;
    const Region& dv;
    std::int64_t row;
  };
  void add_rows(const GradientRows& from, const RowMove& move, std::int32_t kv_chunk);
  void convert_gradients();
  void convert_sums(const TensorView& sums, const TensorView& to, const OwnBlock& block);

  bool relays() const { return program().has_relays; }
  bool sums_in_order() const { return relays() && !relays_beside(); }
  bool refetches() const { return options().backward == BackwardMode::kRefetch; }

  BackwardTensors own_;           // dq, dk, dv: the caller's, in the storage dtype
  BackwardTensors accumulating_;  // the same with dq, dk, dv in scratch
  AttentionCall whole_;
  bool writes_;
  std::vector<TokenRange> summed_rows_;  // own rows whose gradients are sums
  std::byte* scratch_;
  std::vector<Handle> key_gradients_;   // by KV chunk: dK and dV, leaving; else both ways
  std::vector<Handle> lent_gradients_;  // by KV chunk, if posts go ahead: coming home
  // By KV chunk, with relays: shares that leave for relays, and those that come to this one.
  std::vector<Handle> shares_out_, shares_in_;
};

}  // namespace libra
