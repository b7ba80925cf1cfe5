// Events of a device: a pool of them, and when they happened by the host's steady clock.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

namespace libra {

/// Events that are made once and used again, so that a steady state creates none. One thread.
class EventPool {
 public:
  enum class Kind : std::uint8_t { kTiming, kOrderOnly };  ///< order-only events are cheaper

  EventPool(std::int32_t device, Kind kind) : device_(device), kind_(kind) {}
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  cudaEvent_t take();
  /// Nothing may wait for the event or ask for its time any more.
  void give_back(cudaEvent_t event) { free_.push_back(event); }

 private:
  std::int32_t device_;
  Kind kind_;
  std::vector<cudaEvent_t> free_;
};

/// An event that goes back to its pool at the end. Thread rules as the pool's.
class PooledEvent {
 public:
  explicit PooledEvent(EventPool& pool) : pool_(pool), event_(pool.take()) {}
  ~PooledEvent() { pool_.give_back(event_); }
  PooledEvent(const PooledEvent&) = delete;
  PooledEvent& operator=(const PooledEvent&) = delete;

  cudaEvent_t get() const { return event_; }

 private:
  EventPool& pool_;
  cudaEvent_t event_;
};

/// Whether everything before the event is done. Throws DeviceError if the device has failed.
bool has_happened(cudaEvent_t event);

/// Tells when timing events of one device happened.
class DeviceClock {
 public:
  /// Synchronises once with `stream`, to tie the device's clock to the host's.
  DeviceClock(std::int32_t device, cudaStream_t stream);
  ~DeviceClock();
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  /// Nanoseconds of the host's steady clock, to about 10 us; the event must have happened.
  std::int64_t wall_ns(cudaEvent_t event) const;

 private:
  cudaEvent_t origin_ = nullptr;
  std::int64_t origin_ns_ = 0;
};

}  // namespace libra
