#include "libra/transport/nccl/communicator.h"

#include <fmt/format.h>

#include <cstring>
#include <thread>

#include "libra/base/error.h"
#include "libra/cuda/device.h"

namespace libra::nccl {
namespace {

constexpr std::chrono::microseconds kPause{20};

}  // namespace

Communicator::Communicator(const NcclProcess& process, std::chrono::milliseconds deadline)
    : worker_(process.worker), deadline_(deadline) {
  const DeviceGuard guard(process.device);
  ncclUniqueId id;
  static_assert(sizeof id.internal == std::tuple_size_v<NcclId>);
  std::memcpy(id.internal, process.id.data(), process.id.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t status =
      ncclCommInitRankConfig(&comm_, process.workers, id, process.worker, &config);
  try {
    finish(status, "ncclCommInitRank");
  } catch (...) {
    abort();
    throw;
  }
}

Communicator::~Communicator() { abort(); }

void Communicator::finish(ncclResult_t status, const char* call) {
  const auto end = std::chrono::steady_clock::now() + deadline_;
  while (status == ncclInProgress) {
    if (std::chrono::steady_clock::now() > end) {
      throw TransportError(fmt::format("worker {} waited {} ms in {}: a worker has not come",
                                       worker_, deadline_.count(), call));
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
