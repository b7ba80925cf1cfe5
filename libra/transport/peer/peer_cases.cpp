#include "libra/transport/peer/peer_cases.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/rng.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/device.h"

namespace libra::peer {
namespace {

constexpr std::int64_t kHalf = std::int64_t{4} << 20;  // of every arena
constexpr std::byte kUntouched{0xEE};
// Of cases that wait in vain. Also the time that processes have to start, all at once.
constexpr std::chrono::milliseconds kShort{2000};
constexpr const char* kWaited = "2000 ms";

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

Tag tag_of(std::int32_t step, std::int32_t chunk = 0) {
  return {step, Phase::kForwardDispatch, chunk, 0};
}

void upload(const std::vector<std::byte>& from, std::byte* to) {
  copy_memory(from.data(), to, std::ssize(from));
}
std::vector<std::byte> download(const std::byte* from, std::int64_t bytes) {
  std::vector<std::byte> host(at(bytes));
  copy_memory(from, host.data(), bytes);
  return host;
}

// Where the two ends of a transfer lie.
enum class Ends : std::uint8_t { kPush, kPull, kArenaToArena };

struct Planned {
  std::int32_t from = 0, to = 0, chunk = 0;
  std::int64_t rows = 1, row_bytes = 1, gap = 0;
  std::int64_t from_offset = 0, to_offset = 0;  // in the arenas
  std::uint64_t key = 0;

  std::int64_t bytes() const { return rows * row_bytes; }
};

std::vector<Planned> random_plan(std::uint64_t seed, std::int32_t workers, std::int32_t chunks) {
  Rng rng(seed);
  const auto below = [&rng](std::int32_t bound) {
    return static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(bound)));
  };
  std::vector<Planned> plan(at(12 * workers));
  std::vector<std::int64_t> lower(at(workers), 0), upper(at(workers), kHalf);
  for (Planned& p : plan) {
    p = {below(workers),
         below(workers),
         below(chunks),
         1 + below(60),
         1 + below(400),
         below(3) * below(50),
         0,
         0,
         rng.next()};
    p.from_offset = lower[at(p.from)];
    p.to_offset = upper[at(p.to)];
    lower[at(p.from)] += p.bytes();
    upper[at(p.to)] += p.bytes();
  }
  return plan;
}

// The bytes of a transfer, in rows `stride` apart.
std::vector<std::byte> pattern(const Planned& p, std::int64_t stride) {
  std::vector<std::byte> bytes(at(p.rows * stride), kUntouched);
  Rng rng(p.key);
  for (std::int64_t i = 0; i < p.bytes(); ++i) {
    bytes[at(i / p.row_bytes * stride + i % p.row_bytes)] = std::byte(rng.next());
  }
  return bytes;
}

// One end of a planned transfer as it lies in this worker's memory.
struct End {
  std::shared_ptr<std::byte> memory;  // null if in the arena
  StridedView view;
};

End make_end(const Player& player, const Planned& p, bool in_arena, std::int64_t offset) {
  if (in_arena) {
    return {nullptr, {player.transport->arena() + offset, 1, p.bytes(), p.bytes()}};
  }
  const std::int64_t stride = p.row_bytes + p.gap;
  End end{allocate_device(player.stream.device(), p.rows * stride), {}};
  end.view = {end.memory.get(), p.rows, p.row_bytes, stride};
  upload(std::vector<std::byte>(at(p.rows * stride), kUntouched), end.memory.get());
  return end;
}

// This worker's part of a plan.
class Part {
 public:
  Part(Player& player, const std::vector<Planned>& plan, Ends ends, std::int32_t step,
       std::int32_t chunks)
      : player_(player), from_arena_(ends != Ends::kPush), to_arena_(ends != Ends::kPull) {
    for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
      exchanges_.push_back({tag_of(step, chunk), {}, {}});
    }
    for (const Planned& p : plan) add(p);
  }

  void run() {
    std::vector<Handle> handles;
    handles.reserve(exchanges_.size());
    for (const Exchange& exchange : exchanges_) {
      handles.push_back(player_.transport->post(exchange, player_.stream));
    }
    for (const Handle handle : handles) player_.transport->wait(handle, player_.stream);
    player_.stream.synchronize();
  }

  void check() const {
    for (const auto& [end, p] : received_) {
      const std::int64_t stride = end.memory ? p.row_bytes + p.gap : p.row_bytes;
      require(download(end.view.data, p.rows * stride) == pattern(p, stride),
              fmt::format("{} bytes from worker {} to worker {} are not what was sent", p.bytes(),
                          p.from, p.to));
    }
  }

 private:
  void add(const Planned& p) {
    const std::int32_t self = player_.transport->worker();
    Exchange& exchange = exchanges_[at(p.chunk)];
    if (p.from == self) {
      sent_.push_back(make_end(player_, p, from_arena_, p.from_offset));
      const StridedView& view = sent_.back().view;
      upload(pattern(p, view.rows == 1 ? p.row_bytes : view.stride_bytes), view.data);
      exchange.sends.push_back({p.to, view, to_arena_ ? p.to_offset : -1});
    }
    if (p.to == self) {
      received_.emplace_back(make_end(player_, p, to_arena_, p.to_offset), p);
      exchange.receives.push_back(
          {p.from, received_.back().first.view, from_arena_ ? p.from_offset : -1});
    }
  }

  Player& player_;
  bool from_arena_, to_arena_;
  std::vector<Exchange> exchanges_;
  std::vector<End> sent_;
  std::vector<std::pair<End, Planned>> received_;
};

void exchange_plan(Player& player, Ends ends) {
  constexpr std::int32_t kSteps = 3, kChunks = 4;
  player.transport->reserve_arena(2 * kHalf);
  for (std::int32_t step = 0; step < kSteps; ++step) {
    const auto plan = random_plan(player.seed + static_cast<std::uint64_t>(step),
                                  player.transport->workers(), kChunks);
    Part part(player, plan, ends, step, kChunks);
    part.run();
    part.check();
    const auto records = player.transport->take_records();
    require(records.size() == kChunks, fmt::format("{} records of {}", records.size(), kChunks));
  }
}

void pushed(Player& player) { exchange_plan(player, Ends::kPush); }
void pulled(Player& player) { exchange_plan(player, Ends::kPull); }
void arena_to_arena(Player& player) { exchange_plan(player, Ends::kArenaToArena); }

void arenas_grow(Player& player) {
  Transport& transport = *player.transport;
  transport.reserve_arena(1000);
  transport.reserve_arena(500);
  require(transport.arena_bytes() >= 1000, "the arena has shrunk");
  pushed(player);
}

// A ring with two slots: round r is written over round r - 2 as soon as the wait allows it.
void two_slots(Player& player) {
  constexpr std::int32_t kRounds = 60;
  constexpr std::int64_t kBytes = kHalf / 2, kSamples = kBytes / 64;
  Transport& transport = *player.transport;
  CudaStream& stream = player.stream;
  transport.reserve_arena(2 * kHalf);
  const std::int32_t workers = transport.workers();
  const std::int32_t next = (transport.worker() + 1) % workers;
  const std::int32_t previous = (transport.worker() + workers - 1) % workers;
  const auto out = allocate_device(stream.device(), 2 * kBytes);
  const auto log = allocate_device(stream.device(), kRounds * kSamples);
  std::vector<Handle> handles;
  for (std::int32_t round = 0; round < kRounds + 2; ++round) {
    const std::int64_t slot = round % 2 * kBytes;
    std::byte* const in = transport.arena() + slot;
    if (round >= 2) {
      transport.wait(handles[at(round - 2)], stream);
      check_cuda(cudaMemcpy2DAsync(log.get() + (round - 2) * kSamples, 1, in, 64, 1, kSamples,
                                   cudaMemcpyDefault, stream.get()),
                 "cudaMemcpy2DAsync");
    }
    if (round >= kRounds) continue;
    check_cuda(cudaMemsetAsync(out.get() + slot, round, kBytes, stream.get()), "cudaMemsetAsync");
    handles.push_back(transport.post({tag_of(round),
                                      {{next, {out.get() + slot, 1, kBytes, kBytes}, slot}},
                                      {{previous, {in, 1, kBytes, kBytes}}}},
                                     stream));
  }
  stream.synchronize();
  const std::vector<std::byte> found = download(log.get(), kRounds * kSamples);
  for (std::size_t i = 0; i < found.size(); ++i) {
    require(found[i] == std::byte(i / at(kSamples)),
            fmt::format("sample {} is of another round", i));
  }
}

void letters(Player& player) {
  Transport& transport = *player.transport;
  for (std::int32_t step = 0; step < 9; ++step) {
    std::vector<std::int64_t> words(at(transport.workers()));
    words[at(transport.worker())] = 1000 * step + transport.worker();
    Exchange exchange{{step, Phase::kAgree, 0, 0}, {}, {}};
    for (std::int32_t peer = 0; peer < transport.workers(); ++peer) {
      if (peer == transport.worker()) continue;
      const auto word = [&words](std::int32_t worker) {
        return StridedView{reinterpret_cast<std::byte*>(&words[at(worker)]), 1, 8, 8};
      };
      exchange.sends.push_back({peer, word(transport.worker())});
      exchange.receives.push_back({peer, word(peer)});
    }
    transport.wait(transport.post(exchange, player.stream), player.stream);
    player.stream.synchronize();
    for (std::int32_t peer = 0; peer < transport.workers(); ++peer) {
      require(words[at(peer)] == 1000 * step + peer, "a letter is not what was sent");
    }
  }
}

// A ring exchange that takes part in nothing but the order of events.
Exchange ring(Player& player, std::int32_t step) {
  Transport& transport = *player.transport;
  const std::int32_t workers = transport.workers();
  std::byte* const arena = transport.arena();
  return {tag_of(step),
          {{(transport.worker() + 1) % workers, {arena + kHalf, 1, 64, 64}, 0}},
          {{(transport.worker() + workers - 1) % workers, {arena, 1, 64, 64}, kHalf}}};
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const TransportError& error) {
    return error.what();
  }
  return {};
}

// "worker 1", or "workers 0, 1": over NCCL a worker waits for all whose halves are missing.
bool names_worker(const std::string& text, std::int32_t worker) {
  const auto names = [&](const char* before) {
    const std::string name = fmt::format("{}{}", before, worker);
    const std::size_t found = text.find(name);
    return found != std::string::npos &&
           text.find_first_of("0123456789", found + name.size()) != found + name.size();
  };
  return names("worker ") || names("workers ") || names(", ");
}

// Everyone's stream and every later call report the failure, and name a worker.
void expect_failed(Player& player, std::optional<std::int32_t> named,
                   const std::vector<std::string>& words) {
  const auto begin = std::chrono::steady_clock::now();
  std::string text;
  while (text.empty() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
    text = error_of([&] { player.transport->poll(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  require(!named || names_worker(text, *named),
          fmt::format("worker {} is not in: {}", named.value_or(-1), text));
  for (const std::string& word : words) {
    require(text.find(word) != std::string::npos, fmt::format("'{}' is not in: {}", word, text));
  }
  require(player.stream.failure()->failed(), "the stream does not know of the failure");
  require(!error_of([&] { player.stream.synchronize(); }).empty(), "synchronize did not throw");
  require(!error_of([&] { player.transport->post(ring(player, 99), player.stream); }).empty(),
          "a post after the failure did not throw");
}

void post_and_wait(Player& player, std::int32_t step) {
  player.transport->wait(player.transport->post(ring(player, step), player.stream), player.stream);
}

// What a stream knows when it is past a wait.
struct Look {
  std::shared_ptr<StreamFailure> failure;
  bool failed = false;
};

void look_after(const CudaStream& stream, Look& look) {
  const auto run = [](void* data) {
    auto* const found = static_cast<Look*>(data);
    found->failed = found->failure->failed();
  };
  look.failure = stream.failure();
  check_cuda(cudaLaunchHostFunc(stream.get(), run, &look), "cudaLaunchHostFunc");
}

void silent_peer(Player& player) {
  const std::int32_t worker = player.transport->worker();
  player.transport->reserve_arena(2 * kHalf);
  post_and_wait(player, 0);
  player.stream.synchronize();
  Look look;
  if (worker != 1) error_of([&] { post_and_wait(player, 1); });
  look_after(player.stream, look);
  expect_failed(player, 1, {"step 1", kWaited});
  if (worker == 0 || worker == 2) {
    require(look.failed, "the stream went on before it knew of the failure");
  }
}

// The host goes on until the launch queue is full, and stands in a call of the transport's.
void far_ahead(Player& player) {
  constexpr std::int32_t kSteps = 10'000;
  player.transport->reserve_arena(2 * kHalf);
  post_and_wait(player, 0);
  player.stream.synchronize();
  if (player.transport->worker() != 1) {
    const std::string error = error_of([&] {
      for (std::int32_t step = 1; step < kSteps; ++step) post_and_wait(player, step);
    });
    require(!error.empty(), "no post threw");
  }
  expect_failed(player, std::nullopt, {kWaited});  // of whom, depends on who is ahead of whom
}

// So often around the ring that everyone is in the middle of it when the first one is through.
void rounds(Player& player, std::int32_t count) {
  for (std::int32_t step = 0; step < count; ++step) {
    post_and_wait(player, step);
    player.stream.synchronize();
  }
}

void leaving_peer(Player& player) {
  const std::int32_t workers = player.transport->workers();
  player.transport->reserve_arena(2 * kHalf);
  if (player.transport->worker() == 1) {
    rounds(player, workers);
    player.transport.reset();
    return;
  }
  error_of([&] { rounds(player, 2 * workers); });
  expect_failed(player, 1, {});
}

void aborting_peer(Player& player) {
  const std::int32_t workers = player.transport->workers();
  player.transport->reserve_arena(2 * kHalf);
  if (player.transport->worker() == 0) {
    rounds(player, workers);
    player.transport->abort("out of memory");
  } else {
    error_of([&] { rounds(player, workers + 1); });
  }
  expect_failed(player, 0, {"out of memory"});
}

}  // namespace

TransportOptions PeerCase::options() const {
  return {deadline.count() > 0 ? deadline : std::chrono::milliseconds(20'000)};
}

const std::vector<PeerCase>& peer_cases() {
  static const std::vector<PeerCase> cases = {
      {"PushedBytesArriveExactly", pushed},
      {"PulledBytesArriveExactly", pulled},
      {"BytesFromArenaToArenaArriveExactly", arena_to_arena},
      {"ArenasGrow", arenas_grow},
      {"TwoSlotsServeManyRounds", two_slots},
      {"LettersArrive", letters},
      {"ASilentPeerFailsEveryoneAtTheDeadline", silent_peer, 2, kShort},
      {"ASilentPeerFailsAHostThatRunsFarAhead", far_ahead, 2, kShort},
      {"APeerThatLeavesFailsEveryone", leaving_peer, 2, std::chrono::milliseconds(10'000)},
      {"AnAbortReachesEveryone", aborting_peer, 2, std::chrono::milliseconds(10'000)},
  };
  return cases;
}

std::string label(std::size_t index, std::int32_t workers) {
  return fmt::format("{}_{}_workers", peer_cases()[index].name, workers);
}

std::string play(const PeerCase& test, std::unique_ptr<Transport> transport, std::int32_t device,
                 std::uint64_t seed) {
  if (transport->workers() < test.min_workers) return {};
  try {
    const DeviceGuard guard(device);
    CudaStream stream(device);
    Player player{std::move(transport), stream, seed};
    test.run(player);
    player.transport.reset();  // before the stream that it was used with
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace libra::peer
