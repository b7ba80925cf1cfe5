// The tensors of a layer on one GPU, filled with random bf16 values: for measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "libra/attention/attention.h"

namespace libra::cli {

/// Fills device memory with normal bf16 values, the same stretch of them again and again. On zeros,
/// or whatever fresh memory holds, a GPU needs less power and is faster.
void fill_random(std::byte* memory, std::int64_t bytes);

class GpuTensors {
 public:
  /// Q, O, dO, dQ with q_heads heads; K, V, dK, dV with kv_heads; LSE. Standard normal values, the
  /// same stretch of them again and again; gradients are 0.
  GpuTensors(std::int32_t device, std::int64_t rows, std::int32_t q_heads, std::int32_t kv_heads,
             std::int32_t dim);

  ForwardTensors forward() const { return forward(rows_); }
  /// As the pipeliner takes them: gradients in bf16.
  BackwardTensors backward() const { return backward(rows_); }
  /// As an attention backend takes them: gradients in fp32, allocated at the first call.
  BackwardTensors accumulating();

  /// Of the first `rows` rows.
  ForwardTensors forward(std::int64_t rows) const;
  BackwardTensors backward(std::int64_t rows) const;

 private:
  struct Tensor {
    std::shared_ptr<std::byte> memory;
    TensorView view;
    TensorView first(std::int64_t rows) const {
      TensorView part = view;
      part.rows = rows;
      return part;
    }
  };
  Tensor make(DType dtype, std::int32_t heads, std::int32_t dim) const;
  Tensor random(std::int32_t heads) const;

  std::int32_t device_;
  std::int64_t rows_;
  std::int32_t dim_;
  Tensor q_, k_, v_, o_, lse_, d_o_, dq_, dk_, dv_;
  Tensor dq_sum_, dk_sum_, dv_sum_;
};

}  // namespace libra::cli
