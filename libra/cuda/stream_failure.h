// Whether the work on a CUDA stream has failed, as both the host and kernels can see.
//
// A CUDA stream cannot be made to skip work, so what follows a failure still runs, on data that
// never came; what it leaves is filled with NaN by kernels that look at flag() (the backend's
// poison_on_failure). Thread rules: any thread may fail it, at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace libra {

class StreamFailure {
 public:
  StreamFailure();

  /// Sets the flag; the first reason stays.
  void fail(const std::string& reason);

  bool failed() const;

  /// Throws TransportError with the reason if fail() was called.
  void rethrow() const;

  /// Not 0 after a failure. Host memory that kernels of every device can read.
  const std::uint32_t* flag() const { return flag_; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::uint32_t* flag_ = nullptr;
  mutable std::mutex mutex_;
  std::string reason_;
};

}  // namespace libra
