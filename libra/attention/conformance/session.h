// A problem's tensors in a backend's memory, and the calls on them.
//
//   Session session(subject, problem, layouts);
//   session.forward(); session.backward(); session.synchronize();
//   Results results = session.download();
#pragma once

#include <array>
#include <memory>

#include "libra/attention/conformance/problem.h"

namespace libra::conformance {

/// One for each of q, k, v, o, lse, dO, dq, dk, dv, in this order.
using Layouts = std::array<Layout, 9>;

/// Every tensor with other gaps and another order of its axes.
Layouts random_layouts(Rng& rng);

class Session {
 public:
  /// The tensors hold blank_results before the first call.
  Session(const Subject& subject, const Problem& problem, const Layouts& layouts = {},
          double poison = 0.0);

  void forward() { forward(call_); }
  void backward() { backward(call_); }
  void forward(const AttentionCall& call) { backend_->forward(call, forward_views(), *stream_); }
  void backward(const AttentionCall& call) { backend_->backward(call, backward_views(), *stream_); }
  void synchronize() { stream_->synchronize(); }

  ForwardTensors forward_views() const;
  BackwardTensors backward_views() const;
  AttentionBackend& backend() { return *backend_; }
  Stream& stream() { return *stream_; }
  const AttentionCall& call() const { return call_; }

  Results download() const;
  /// Every byte of O, LSE, dQ, dK and dV, gaps included.
  std::vector<std::vector<std::byte>> images() const;

 private:
  Session(const Subject& subject, const Problem& problem, const Layouts& layouts,
          const Results& blank);

  AttentionCall call_;
  DeviceTensor q_, k_, v_, o_, lse_, d_o_, dq_, dk_, dv_;
  std::unique_ptr<AttentionBackend> backend_;
  std::unique_ptr<Stream> stream_;  // last: destroyed, and so drained, before the memory
};

/// forward, backward, synchronize, download.
Results run(const Subject& subject, const Problem& problem, const Layouts& layouts = {},
            double poison = 0.0);

}  // namespace libra::conformance
