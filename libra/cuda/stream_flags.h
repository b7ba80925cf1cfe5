// Words in memory that streams write and wait for: how streams of different processes order their
// work without the host.
//
// A word counts up; a stream waits until it is at or past a value, compared as a signed difference,
// so that values may wrap around. A stream's write comes after everything the stream did before,
// for whoever sees it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace libra {

/// Enqueues *word = value. `word`: device memory, or host memory as the device sees it.
void enqueue_write(cudaStream_t stream, std::uint32_t* word, std::uint32_t value);

/// Holds the stream back until *word - value >= 0 (as int32). Nothing else ends this wait: whoever
/// might never write must have a watchdog.
void enqueue_wait(cudaStream_t stream, std::uint32_t* word, std::uint32_t value);

}  // namespace libra
