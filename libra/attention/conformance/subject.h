// What a backend's author writes to have the backend judged by the conformance suite
// (attention_conformance.h): how to make it, a stream, and memory that it can reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libra/attention/attention.h"
#include "libra/base/dtype.h"
#include "libra/base/stream.h"

namespace libra::conformance {

/// Dimensions of a query or key head, and of a value head.
struct HeadDims {
  std::int32_t qk;
  std::int32_t v;
};

class Subject {
 public:
  virtual ~Subject() = default;

  /// Why this machine cannot run the backend: then the suite skips and says so. Empty if it can.
  virtual std::string why_not() const { return {}; }

  virtual std::unique_ptr<AttentionBackend> make_backend() const = 0;
  virtual std::unique_ptr<Stream> make_stream() const = 0;

  /// Memory that the backend can reach, contents unspecified, freed with the last copy of the
  /// pointer. The suite asks for up to 9 GB and then touches a few kilobytes.
  virtual std::shared_ptr<std::byte> allocate(std::int64_t bytes) const = 0;

  /// Host memory to `to`, which allocate() gave, and back. Done on return.
  virtual void upload(const std::byte* from, std::byte* to, std::int64_t bytes) const = 0;
  virtual void download(const std::byte* from, std::byte* to, std::int64_t bytes) const = 0;

  /// Makes the stream fail: work enqueued after this is skipped, synchronize() throws.
  virtual void fail(Stream& stream) const = 0;

  /// What the backend supports, among fp64, fp32, bf16 and fp16; the others must give a
  /// ConfigError.
  virtual std::vector<DType> dtypes() const = 0;
  virtual std::vector<HeadDims> head_dims() const = 0;

  /// Whether the gradients of one entry and query head leave the kernel in the storage type before
  /// they are added up, as fused kernels have it. The dense computation that errors are measured
  /// against (judge.h) then does the same.
  virtual bool rounds_gradients() const { return false; }
};

}  // namespace libra::conformance
