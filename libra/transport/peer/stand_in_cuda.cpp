// Stands in for the CUDA runtime where there is no GPU, as far as this room calls it, so that its
// tests run there too: a stream is a thread (stand_in_stream.h), device memory is shared memory,
// and IPC handles name it. Linked into test programs alone, ahead of the runtime. Parameters have
// CUDA's names.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "libra/transport/peer/stand_in_stream.h"

namespace {

using libra::peer::StandInEvent;
using libra::peer::StandInStream;

constexpr int kDevices = 8;
constexpr std::size_t kLine = 64;

struct Handle {
  char name[48];
  std::size_t bytes;
};
static_assert(sizeof(Handle) <= sizeof(cudaIpcMemHandle_t));

struct Memory {
  std::mutex mutex;
  std::map<void*, Handle> blocks;  // own and imported
  int count = 0;
};

Memory& memory() {
  static Memory all;
  return all;
}

thread_local int current_device = 0;

template <typename Work>
cudaError_t enqueue(cudaStream_t stream, Work work) {
  reinterpret_cast<StandInStream*>(stream)->enqueue(std::move(work));
  return cudaSuccess;
}

StandInStream& stream_of(cudaStream_t stream) { return *reinterpret_cast<StandInStream*>(stream); }
/// Shared with the streams that still refer to it.
using EventHandle = std::shared_ptr<StandInEvent>;

EventHandle& event_of(cudaEvent_t event) { return *reinterpret_cast<EventHandle*>(event); }

cudaError_t map_block(const Handle& handle, int flags, void** block) {
  const int file = shm_open(handle.name, flags, S_IRUSR | S_IWUSR);
  if (file < 0 || ftruncate(file, static_cast<off_t>(handle.bytes)) != 0) {
    return cudaErrorMemoryAllocation;
  }
  *block = mmap(nullptr, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  const std::lock_guard lock(memory().mutex);
  memory().blocks[*block] = handle;
  return cudaSuccess;
}

cudaError_t unmap_block(void* block, bool own) {
  const std::lock_guard lock(memory().mutex);
  const auto found = memory().blocks.find(block);
  if (found == memory().blocks.end()) return cudaErrorInvalidValue;
  if (own) shm_unlink(found->second.name);
  munmap(block, found->second.bytes);
  memory().blocks.erase(found);
  return cudaSuccess;
}

CUresult write_value(CUstream stream, CUdeviceptr word, cuuint32_t value, unsigned) {
  auto* const target = reinterpret_cast<std::uint32_t*>(word);
  enqueue(stream, [=] { std::atomic_ref(*target).store(value, std::memory_order_release); });
  return CUDA_SUCCESS;
}

CUresult wait_value(CUstream stream, CUdeviceptr word, cuuint32_t value, unsigned) {
  auto* const source = reinterpret_cast<std::uint32_t*>(word);
  enqueue(stream, [=] {
    const std::atomic_ref flag(*source);
    while (static_cast<std::int32_t>(flag.load(std::memory_order_acquire) - value) < 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  return CUDA_SUCCESS;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kDevices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "the stand-in's"; }
const char* cudaGetErrorName(cudaError_t) { return "an error"; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(new StandInStream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete &stream_of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == nullptr) return cudaSuccess;  // nothing is enqueued on the default one
  stream_of(stream).synchronize();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new EventHandle(std::make_shared<StandInEvent>()));
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return enqueue(stream, [recorded = event_of(event), count = event_of(event)->record()] {
    recorded->reach(count);
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return event_of(event)->has_happened() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  event_of(event)->await(event_of(event)->latest());
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  *ms = std::chrono::duration<float, std::milli>(event_of(end)->at - event_of(start)->at).count();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return enqueue(stream, [awaited = event_of(event), count = event_of(event)->latest()] {
    awaited->await(count);
  });
}

cudaError_t cudaMemcpy(void* dst, const void* src, std::size_t count, cudaMemcpyKind) {
  std::memcpy(dst, src, count);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t count, cudaMemcpyKind,
                            cudaStream_t stream) {
  return enqueue(stream, [=] { std::memcpy(dst, src, count); });
}
cudaError_t cudaMemcpy2DAsync(void* dst, std::size_t dpitch, const void* src, std::size_t spitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind,
                              cudaStream_t stream) {
  return enqueue(stream, [=] {
    for (std::size_t row = 0; row < height; ++row) {
      std::memcpy(static_cast<char*>(dst) + row * dpitch,
                  static_cast<const char*>(src) + row * spitch, width);
    }
  });
}
cudaError_t cudaMemsetAsync(void* devPtr, int value, std::size_t count, cudaStream_t stream) {
  return enqueue(stream, [=] { std::memset(devPtr, value, count); });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData) {
  return enqueue(stream, [=] { fn(userData); });
}

cudaError_t cudaMalloc(void** devPtr, std::size_t size) {
  Handle handle{};
  {
    const std::lock_guard lock(memory().mutex);
    const std::string name = fmt::format("/libra-stand-in-{}-{}", getpid(), memory().count++);
    name.copy(handle.name, sizeof(handle.name) - 1);
  }
  handle.bytes = size;
  return map_block(handle, O_CREAT | O_RDWR, devPtr);
}
cudaError_t cudaFree(void* devPtr) { return unmap_block(devPtr, true); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 30U;
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** pHost, std::size_t size, unsigned) {
  *pHost = std::aligned_alloc(kLine, (size + kLine - 1) / kLine * kLine);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* ptr) {
  std::free(ptr);  // NOLINT(cppcoreguidelines-no-malloc)
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void*, std::size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* devPtr) {
  const std::lock_guard lock(memory().mutex);
  std::memcpy(handle, &memory().blocks.at(devPtr), sizeof(Handle));
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void** devPtr, cudaIpcMemHandle_t handle, unsigned) {
  Handle there{};
  std::memcpy(&there, &handle, sizeof(Handle));
  return map_block(there, O_RDWR, devPtr);
}
cudaError_t cudaIpcCloseMemHandle(void* devPtr) { return unmap_block(devPtr, false); }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** funcPtr, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* driverStatus) {
  *funcPtr = std::strcmp(symbol, "cuStreamWaitValue32") == 0
                 ? reinterpret_cast<void*>(&wait_value)
                 : reinterpret_cast<void*>(&write_value);
  *driverStatus = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
