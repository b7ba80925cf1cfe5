// The workers of a benchmark, as threads of this program or as processes, and memory that all of
// them see.
//
//   Crew crew(Crew::Kind::kProcesses, 2);
//   SharedArray<double> seconds(2);
//   crew.run([&](std::int32_t worker) { crew.together(); seconds[worker] = ...; });
//
// Processes are forked, so this one must not have touched a GPU before.
#pragma once

#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "libra/base/error.h"

namespace libra {

/// Zeros at first. Forked processes share it with their parent.
template <typename T>
class SharedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit SharedArray(std::size_t size) : bytes_(size * sizeof(T)) {
    void* const memory = mmap(nullptr, bytes_ > 0 ? bytes_ : 1, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Error("no shared memory for the results");
    data_ = static_cast<T*>(memory);
  }
  ~SharedArray() { munmap(data_, bytes_ > 0 ? bytes_ : 1); }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;

  T& operator[](std::size_t index) { return data_[index]; }

 private:
  std::size_t bytes_;
  T* data_;
};

class Crew {
 public:
  enum class Kind : std::uint8_t { kThreads, kProcesses };

  Crew(Kind kind, std::int32_t workers);

  /// Runs the body once per worker, all at the same time. Throws Error if a process fails; the
  /// others are ended then. An exception on a thread ends the program.
  void run(const std::function<void(std::int32_t)>& body);

  /// Returns once all workers have come here.
  void together() { pthread_barrier_wait(&barrier_[0]); }

 private:
  void run_processes(const std::function<void(std::int32_t)>& body) const;

  Kind kind_;
  std::int32_t workers_;
  SharedArray<pthread_barrier_t> barrier_;
};

}  // namespace libra
