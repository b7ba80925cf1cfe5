#include "libra/cuda/stream_failure.h"

#include <atomic>
#include <new>

#include "libra/base/error.h"
#include "libra/cuda/cuda_memory.h"

namespace libra {

StreamFailure::StreamFailure()
    : memory_(allocate_mapped(sizeof(std::uint32_t))),
      flag_(new (memory_.get()) std::uint32_t{0}) {}

void StreamFailure::fail(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (reason_.empty()) reason_ = reason;
  std::atomic_ref(*flag_).store(1, std::memory_order_release);
}

bool StreamFailure::failed() const {
  return std::atomic_ref(*flag_).load(std::memory_order_acquire) != 0;
}

void StreamFailure::rethrow() const {
  const std::lock_guard lock(mutex_);
  if (!reason_.empty()) throw TransportError(reason_);
}

}  // namespace libra
