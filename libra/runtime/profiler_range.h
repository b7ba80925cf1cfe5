// A named stretch of the host's work that profilers of GPUs show (NVTX, for Nsight Systems). Where
// CUDA is not, nothing. Costs nanoseconds while no profiler listens.
#pragma once

namespace libra {

class ProfilerRange {
 public:
  explicit ProfilerRange(const char* name);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace libra
