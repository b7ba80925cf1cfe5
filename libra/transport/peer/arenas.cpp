#include "libra/transport/peer/arenas.h"

#include <fmt/format.h>
#include <unistd.h>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/device.h"

namespace libra::peer {

Arenas::Arenas(ControlBlock& control, std::int32_t worker, std::int32_t device)
    : control_(control), worker_(worker), device_(device), others_(at(control.workers())) {}

Arenas::~Arenas() { close_others(); }

// Nobody may have the old memory open when it is freed, nor be without the new one when it is used.
void Arenas::reserve(std::int64_t bytes) {
  if (bytes <= bytes_) return;
  const DeviceGuard guard(device_);
  try {
    close_others();
    control_.barrier("it has not let go of the arenas");
    own_.reset();
    bytes_ = 0;
    own_ = allocate_device(device_, bytes);
    bytes_ = bytes;
    publish();
    control_.barrier("it has not grown its arena");
    open_others();
  } catch (const DeviceError& error) {
    control_.fail(fmt::format("worker {}: {}", worker_, error.what()));
    throw;
  }
}

void Arenas::publish() {
  Seat& seat = control_.seat(worker_);
  seat.device = device_;
  seat.arena = own_.get();
  seat.arena_bytes = bytes_;
  check_cuda(cudaIpcGetMemHandle(&seat.handle, own_.get()), "cudaIpcGetMemHandle");
}

void Arenas::open_others() {
  for (std::int32_t worker = 0; worker < control_.workers(); ++worker) {
    const Seat& seat = control_.seat(worker);
    Other& other = others_[at(worker)];
    if (seat.process == getpid()) {
      other = {seat.arena, false};
      continue;
    }
    void* memory = nullptr;
    check_cuda(cudaIpcOpenMemHandle(&memory, seat.handle, cudaIpcMemLazyEnablePeerAccess),
               "cudaIpcOpenMemHandle");
    other = {static_cast<std::byte*>(memory), true};
  }
}

void Arenas::close_others() {
  for (Other& other : others_) {
    if (other.imported) cudaIpcCloseMemHandle(other.memory);
    other = {};
  }
}

bool Arenas::holds(const StridedView& view) const {
  return view.data >= own() && view.data < own() + bytes_;
}

StridedView Arenas::at_peer(std::int32_t peer, std::int64_t offset, std::int64_t bytes) const {
  const std::int64_t size = control_.seat(peer).arena_bytes;
  if (offset + bytes > size) {
    throw ConfigError(
        fmt::format("worker {} reaches for bytes {} to {} of worker {}'s arena, which has {}",
                    worker_, offset, offset + bytes, peer, size));
  }
  return {others_[at(peer)].memory + offset, 1, bytes, bytes};
}

}  // namespace libra::peer
