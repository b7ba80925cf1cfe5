#include "libra/transport/nccl/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <thread>

#include "libra/base/error.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"

namespace libra::nccl {
namespace {

constexpr std::chrono::microseconds kPause{20};
constexpr std::chrono::milliseconds kLeastStart{30'000};

}  // namespace

Communicator::Communicator(const NcclProcess& process, std::chrono::milliseconds deadline)
    : worker_(process.worker),
      device_(process.device),
      deadline_(deadline),
      start_limit_(std::max(deadline, kLeastStart)) {
  const DeviceGuard guard(process.device);
  ncclUniqueId id;
  static_assert(sizeof id.internal == std::tuple_size_v<NcclId>);
  std::memcpy(id.internal, process.id.data(), process.id.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t status =
      ncclCommInitRankConfig(&comm_, process.workers, id, process.worker, &config);
  try {
    finish(status, "ncclCommInitRank", start_limit_);
  } catch (...) {
    abort();
    throw;
  }
}

Communicator::~Communicator() { abort(); }

void Communicator::connect(const std::vector<std::int32_t>& peers) {
  if (peers.empty()) return;
  auto stream = std::make_unique<CudaStream>(device_);
  const auto bytes = allocate_device(device_, 2 * std::ssize(peers));
  try {
    exchange_bytes(peers, bytes.get(), stream->get());
  } catch (const TransportError&) {
    aborted_ = true;  // which abort() then takes for done
    // NCCL may yet come to both.
    static_cast<void>(stream.release());
    static_cast<void>(std::make_unique<std::shared_ptr<std::byte>>(bytes).release());
    throw;
  }
  try {
    await(stream->get());
  } catch (...) {
    abort();  // or what its kernel uses could not be freed before the peer comes
    throw;
  }
}

void Communicator::exchange_bytes(const std::vector<std::int32_t>& peers, std::byte* bytes,
                                  cudaStream_t stream) {
  finish(ncclGroupStart(), "ncclGroupStart", start_limit_);
  for (const std::int32_t peer : peers) {
    ncclSend(bytes++, 1, ncclInt8, peer, comm_, stream);
    ncclRecv(bytes++, 1, ncclInt8, peer, comm_, stream);
  }
  finish(ncclGroupEnd(), "connecting", start_limit_);
}

// Connected by now: what is in flight can be aborted.
void Communicator::await(cudaStream_t stream) const {
  const auto end = std::chrono::steady_clock::now() + start_limit_;
  for (;;) {
    const cudaError_t status = cudaStreamQuery(stream);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check_cuda(status, "connecting");
    if (const std::string error = async_error(); !error.empty()) throw TransportError(error);
    if (std::chrono::steady_clock::now() > end) {
      throw TransportError(fmt::format("worker {} waited {} ms for its peers' first byte", worker_,
                                       start_limit_.count()));
    }
    std::this_thread::sleep_for(kPause);
  }
}

void Communicator::finish(ncclResult_t status, const char* call, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (status == ncclInProgress) {
    if (std::chrono::steady_clock::now() > end) {
      throw TransportError(fmt::format("worker {} waited {} ms in {}: a worker has not come",
                                       worker_, limit.count(), call));
    }
    std::this_thread::sleep_for(kPause);
    if (ncclCommGetAsyncError(comm_, &status) != ncclSuccess) status = ncclInternalError;
  }
  if (status == ncclSuccess) return;
  throw TransportError(
      fmt::format("worker {}: {} failed: {}", worker_, call, ncclGetErrorString(status)));
}

std::string Communicator::async_error() const {
  ncclResult_t status = ncclSuccess;
  if (aborted_ || ncclCommGetAsyncError(comm_, &status) != ncclSuccess) return {};
  if (status == ncclSuccess || status == ncclInProgress) return {};
  return fmt::format("worker {}: NCCL reports: {}", worker_, ncclGetErrorString(status));
}

void Communicator::abort() {
  if (comm_ != nullptr && !aborted_.exchange(true)) ncclCommAbort(comm_);
}

}  // namespace libra::nccl
