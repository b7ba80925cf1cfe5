#include "libra/transport/peer/control_block.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "libra/base/error.h"
#include "libra/cuda/cuda_error.h"

namespace libra::peer {
namespace {

constexpr std::size_t kReasonBytes = 1024;
constexpr std::size_t kLine = 64;
constexpr std::chrono::microseconds kPause{50};

std::size_t rounded(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

std::size_t count(std::int32_t n) { return static_cast<std::size_t>(n); }

std::string segment_name(const std::string& job) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  if (job.empty() || job.size() > 200 || !std::all_of(job.begin(), job.end(), plain)) {
    throw ConfigError(fmt::format(
        "'{}' cannot name a pool: use 1 to 200 letters, digits, hyphens and underscores", job));
  }
  return "/libra-" + job;
}

[[noreturn]] void throw_system(const char* what, const std::string& name) {
  throw TransportError(fmt::format("{} of shared memory {} failed: {}", what, name,
                                   std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

struct ControlBlock::Header {
  std::atomic<std::uint64_t> layout;
  std::atomic<std::uint32_t> failed;  ///< 1: being written, 2: reason is there
  char reason[kReasonBytes];
};

ControlBlock::ControlBlock(const std::string& job, std::int32_t worker, std::int32_t workers,
                           std::chrono::milliseconds deadline)
    : worker_(worker), workers_(workers), deadline_(deadline) {
  const std::string name = segment_name(job);
  const std::size_t pairs = count(workers) * count(workers);
  bytes_ = rounded(sizeof(Header)) + count(workers) * rounded(sizeof(Seat)) +
           pairs * (sizeof(PairFlags) + sizeof(Mail));
  map(name);
  try {
    take_seat();
    await([](const Seat& seat) { return seat.taken != 0; }, "the pool to assemble");
  } catch (...) {
    shm_unlink(name.c_str());
    munmap(memory_, bytes_);
    throw;
  }
  if (worker == 0) shm_unlink(name.c_str());  // all have it: a crash leaves nothing behind
  check_cuda(cudaHostRegister(memory_, bytes_, cudaHostRegisterMapped | cudaHostRegisterPortable),
             "cudaHostRegister");
  void* device_memory = nullptr;
  check_cuda(cudaHostGetDevicePointer(&device_memory, memory_, 0), "cudaHostGetDevicePointer");
  device_memory_ = static_cast<std::byte*>(device_memory);
}

ControlBlock::~ControlBlock() {
  cudaHostUnregister(memory_);
  munmap(memory_, bytes_);
}

void ControlBlock::map(const std::string& name) {
  const int file = shm_open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) throw_system("opening", name);
  const bool sized = ftruncate(file, static_cast<off_t>(bytes_)) == 0;
  void* const memory =
      sized ? mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) throw_system("mapping", name);
  memory_ = static_cast<std::byte*>(memory);
}

// A fresh segment is all zero, which is the initial state of everything in it.
void ControlBlock::take_seat() {
  const std::uint64_t mine = (std::uint64_t{kSlots} << 32U) | static_cast<std::uint32_t>(workers_);
  std::uint64_t found = 0;
  if (!header().layout.compare_exchange_strong(found, mine) && found != mine) {
    throw ConfigError(fmt::format("worker {} expects {} workers in this pool, another one {}",
                                  worker_, workers_, found & 0xFFFFFFFFU));
  }
  Seat& own = seat(worker_);
  own.process = getpid();
  if (own.taken.exchange(1) != 0) {
    throw ConfigError(fmt::format("there are two workers {} in this pool", worker_));
  }
}

ControlBlock::Header& ControlBlock::header() const { return *reinterpret_cast<Header*>(memory_); }

Seat& ControlBlock::seat(std::int32_t worker) {
  return *reinterpret_cast<Seat*>(memory_ + rounded(sizeof(Header)) +
                                  count(worker) * rounded(sizeof(Seat)));
}

PairFlags& ControlBlock::flags(std::int32_t from, std::int32_t to) {
  std::byte* const first = reinterpret_cast<std::byte*>(&seat(workers_));
  return *reinterpret_cast<PairFlags*>(first + count(from * workers_ + to) * sizeof(PairFlags));
}

Mail& ControlBlock::mail(std::int32_t from, std::int32_t to) {
  std::byte* const first = reinterpret_cast<std::byte*>(&flags(workers_, 0));
  return *reinterpret_cast<Mail*>(first + count(from * workers_ + to) * sizeof(Mail));
}

std::uint32_t* ControlBlock::on_device(std::uint32_t* word) const {
  return reinterpret_cast<std::uint32_t*>(device_memory_ +
                                          (reinterpret_cast<std::byte*>(word) - memory_));
}

void ControlBlock::barrier(const std::string& purpose) {
  const std::uint32_t mine = ++seat(worker_).barriers;
  await([mine](const Seat& other) { return other.barriers >= mine; }, purpose);
}

void ControlBlock::await(const std::function<bool(const Seat&)>& there,
                         const std::string& purpose) {
  const auto end = std::chrono::steady_clock::now() + deadline_;
  for (;;) {
    std::vector<std::int32_t> missing;
    for (std::int32_t worker = 0; worker < workers_; ++worker) {
      if (!there(seat(worker))) missing.push_back(worker);
    }
    if (missing.empty()) return;
    if (failed()) throw TransportError(failure());
    if (std::chrono::steady_clock::now() > end) {
      const std::string reason =
          fmt::format("worker {} waited {} ms for worker{} {}: {}", worker_, deadline_.count(),
                      missing.size() > 1 ? "s" : "", fmt::join(missing, ", "), purpose);
      fail(reason);
      throw TransportError(reason);
    }
    std::this_thread::sleep_for(kPause);
  }
}

void ControlBlock::fail(const std::string& reason) {
  std::uint32_t none = 0;
  if (!header().failed.compare_exchange_strong(none, 1)) return;
  const std::size_t length = std::min(reason.size(), kReasonBytes - 1);
  std::memcpy(header().reason, reason.data(), length);
  header().reason[length] = '\0';
  header().failed = 2;
}

bool ControlBlock::failed() const { return header().failed == 2; }

std::string ControlBlock::failure() const { return static_cast<const char*>(header().reason); }

std::int32_t slot_of(const Tag& tag) {
  if (tag.chunk >= kMaxChunks || tag.round >= kMaxRounds) {
    throw ConfigError(
        fmt::format("{}: between processes the chunk must be below {} and the round "
                    "below {}",
                    describe(tag), kMaxChunks, kMaxRounds));
  }
  return (static_cast<std::int32_t>(tag.phase) * kMaxChunks + tag.chunk) * kMaxRounds + tag.round;
}

std::uint32_t value_of(const Tag& tag) {
  const std::uint32_t value = static_cast<std::uint32_t>(tag.step) + 1;
  if (value >= kReleased) {
    throw ConfigError(fmt::format("step {} is too large: at most {}", tag.step, kReleased - 2));
  }
  return value;
}

bool has_come(std::uint32_t& flag, std::uint32_t value) {
  const std::uint32_t found = std::atomic_ref(flag).load(std::memory_order_acquire);
  return static_cast<std::int32_t>(found - value) >= 0;
}

void release(std::uint32_t& flag) {
  std::atomic_ref(flag).store(kReleased, std::memory_order_release);
}

}  // namespace libra::peer
