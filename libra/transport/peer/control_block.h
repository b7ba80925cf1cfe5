// The shared memory through which processes that exchange by copy engines order their work and hear
// of failures: one segment per pool. Private to this folder.
//
//   seats   of each worker: who it is, and the handle of its arena
//   flags   of each ordered pair of workers and each slot (phase, chunk, round): `ready` (the side
//           that copies may begin) and `done` (it has), written and awaited by streams
//   mail    of each ordered pair: a few bytes from host memory to host memory
//
// Flags count steps: the value of a tag is its step + 1, so nothing is ever reset. Streams of one
// worker alone wait for a flag; at a failure its watchdog sets it to kReleased again and again,
// which frees them.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "libra/transport/transport.h"

namespace libra::peer {

/// Limits of a tag on this transport.
constexpr std::int32_t kPhases = 6, kMaxChunks = 64, kMaxRounds = 4;
constexpr std::int32_t kSlots = kPhases * kMaxChunks * kMaxRounds;
/// Bytes of one mail, and how many from one worker to another are kept apart.
constexpr std::int64_t kMailBytes = 64;
constexpr std::int32_t kMailSlots = 4;
/// Past every value in use.
constexpr std::uint32_t kReleased = std::uint32_t{1} << 30;

struct Seat {
  std::atomic<std::uint32_t> taken;
  std::atomic<std::uint32_t> barriers;  ///< passed so far
  std::atomic<std::uint32_t> left;
  std::int32_t process = 0;
  std::int32_t device = 0;
  std::byte* arena = nullptr;  ///< in its own process
  std::int64_t arena_bytes = 0;
  cudaIpcMemHandle_t handle{};
};

struct PairFlags {
  std::uint32_t ready[kSlots];
  std::uint32_t done[kSlots];
};

struct Mail {
  std::byte bytes[kMailSlots][kMailBytes];
};

class ControlBlock {
 public:
  /// Takes worker `worker`'s seat and returns when all seats are taken. `job` names the pool, and
  /// is different for every pool and run on this host. Throws ConfigError for a name that cannot be
  /// one, another number of workers or a seat that is taken; TransportError at the deadline.
  ControlBlock(const std::string& job, std::int32_t worker, std::int32_t workers,
               std::chrono::milliseconds deadline);
  ~ControlBlock();
  ControlBlock(const ControlBlock&) = delete;
  ControlBlock& operator=(const ControlBlock&) = delete;

  std::int32_t workers() const { return workers_; }
  Seat& seat(std::int32_t worker);
  PairFlags& flags(std::int32_t from, std::int32_t to);
  Mail& mail(std::int32_t from, std::int32_t to);

  /// A host word's address on the device.
  std::uint32_t* on_device(std::uint32_t* word) const;

  /// Waits until every worker has come here as often as this one. Throws TransportError that names
  /// who has not at the deadline, or the failure if there is one.
  void barrier(const std::string& purpose);

  /// The first reason is kept.
  void fail(const std::string& reason);
  bool failed() const;
  std::string failure() const;

 private:
  struct Header;

  Header& header() const;
  void map(const std::string& name);
  void take_seat();
  void await(const std::function<bool(const Seat&)>& there, const std::string& purpose);

  std::int32_t worker_;
  std::int32_t workers_;
  std::chrono::milliseconds deadline_;
  std::byte* memory_ = nullptr;
  std::byte* device_memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The tag's slot. Throws ConfigError if it is beyond the limits.
std::int32_t slot_of(const Tag& tag);
std::uint32_t value_of(const Tag& tag);

/// Whether a flag has come to `value`.
bool has_come(std::uint32_t& flag, std::uint32_t value);

/// Frees the stream that waits for the flag, or will.
void release(std::uint32_t& flag);

}  // namespace libra::peer
