#include "libra/transport/mpi/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "libra/base/error.h"
#include "libra/transport/mpi/wire.h"

namespace libra::mpi {
namespace {

constexpr int kNoticeTag = 0;

// While data may move at any time the thread looks again at once, for a while; then it sleeps
// between looks, so that a waiting worker leaves its core to those that compute.
constexpr std::int64_t kEagerLooks = 200;
constexpr std::chrono::microseconds kBusyPause{50};
constexpr std::chrono::microseconds kIdlePause{1000};

void check_tags(MPI_Comm comm) {
  int* largest = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(comm, MPI_TAG_UB, &largest, &found), "asking for the largest tag");
  if (found != 0 && *largest < kLargestWireTag)
    throw TransportError(
        fmt::format("this MPI has tags up to {}: {} are needed", *largest, kLargestWireTag));
}

}  // namespace

Progress::Progress(std::shared_ptr<SessionState> session, std::shared_ptr<Ledger> ledger,
                   const TransportOptions& options)
    : session_(std::move(session)),
      ledger_(std::move(ledger)),
      grace_(std::min(options.deadline / 2, std::chrono::milliseconds(1000))) {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &data_), "duplicating the communicator");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &notices_), "duplicating the communicator");
  MPI_Comm_set_errhandler(data_, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(notices_, MPI_ERRORS_RETURN);
  check_tags(data_);
  listen();
  session_->has_transport = true;
  ledger_->hold();
  thread_ = std::thread([this] { run(); });
}

Progress::~Progress() { leave(); }

void Progress::arm(const std::shared_ptr<Posting>& posting) {
  for (std::size_t i = 0; i < posting->transfers(); ++i) check_counts(posting->transfer(i).local);
  const std::lock_guard lock(mutex_);
  ledger_->arm(*posting);
  armed_.push_back(posting);
  changed_.notify_one();
}

void Progress::fail(const std::string& cause) {
  const std::lock_guard lock(mutex_);
  ledger_->fail(cause);
  if (cause_.empty()) cause_ = cause;
  changed_.notify_one();
}

void Progress::leave() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_one();
  thread_.join();
  session_->has_transport = false;
}

void Progress::run() {
  try {
    serve();
  } catch (const std::exception& error) {  // of whatever kind: peers must not wait for it
    fail(fmt::format("worker {}: {}", ledger_->worker(), error.what()));
  }
  wind_up();
  ledger_->release();
}

void Progress::serve() {
  for (std::int64_t idle_looks = 0;; ++idle_looks) {
    std::vector<std::shared_ptr<Posting>> armed;
    {
      const std::lock_guard lock(mutex_);
      if (leaving_ || !cause_.empty()) return;
      armed.swap(armed_);
    }
    for (const auto& posting : armed) start(posting);
    const bool moved = collect();
    hear();
    if (const std::string report = ledger_->overdue_report(); !report.empty()) fail(report);
    if (moved || !armed.empty()) idle_looks = -1;
    rest(idle_looks + 1);
  }
}

void Progress::start(const std::shared_ptr<Posting>& posting) {
  const int tag = wire_tag(posting->exchange().tag);
  for (std::size_t i = 0; i < posting->transfers(); ++i) {
    const auto& [peer, view, offset] = posting->transfer(i);
    const WireType type(view);
    MPI_Request request = MPI_REQUEST_NULL;
    if (posting->is_send(i)) {
      check_mpi(MPI_Isend(view.data, type.count(), type.type(), peer, tag, data_, &request),
                fmt::format("sending to worker {}", peer));
    } else {
      check_mpi(MPI_Irecv(view.data, type.count(), type.type(), peer, tag, data_, &request),
                fmt::format("receiving from worker {}", peer));
    }
    requests_.push_back(request);
    in_flight_.push_back({posting, i});
  }
}

bool Progress::collect() {
  if (requests_.empty()) return false;
  std::vector<int> done(requests_.size());
  std::vector<MPI_Status> statuses(requests_.size());
  int count = 0;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                done.data(), statuses.data());
  if (code != MPI_ERR_IN_STATUS) check_mpi(code, "testing requests");
  for (int i = 0; i < count; ++i) {
    const auto n = static_cast<std::size_t>(i);
    const InFlight& ended = in_flight_[static_cast<std::size_t>(done[n])];
    finish(ended, statuses[n], code == MPI_SUCCESS ? MPI_SUCCESS : statuses[n].MPI_ERROR);
  }
  // MPI has set the ended ones to null.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    in_flight_[kept++] = std::move(in_flight_[i]);
  }
  requests_.resize(kept);
  in_flight_.resize(kept);
  return count > 0;
}

void Progress::finish(const InFlight& in_flight, const MPI_Status& status, int error) {
  const auto& [posting, transfer] = in_flight;
  const bool is_send = posting->is_send(transfer);
  const auto& [peer, view, offset] = posting->transfer(transfer);
  const std::string where = describe(posting->exchange().tag);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(error, &error_class);
  if (error_class == MPI_ERR_TRUNCATE) {
    fail(
        fmt::format("worker {} sends more than the {} bytes that worker {} expects, in {}: do they "
                    "run one plan?",
                    peer, view.bytes(), ledger_->worker(), where));
    return;
  }
  check_mpi(error,
            fmt::format("moving data {} worker {} in {}", is_send ? "to" : "from", peer, where));
  MPI_Count received = view.bytes();
  int cancelled = 0;
  if (!is_send) {
    MPI_Test_cancelled(&status, &cancelled);
    MPI_Get_elements_x(&status, MPI_BYTE, &received);
  }
  if (cancelled != 0) return;
  if (received != view.bytes()) {
    fail(fmt::format(
        "worker {} sends {} bytes to worker {}, which expects {}, in {}: do they run "
        "one plan?",
        peer, static_cast<std::int64_t>(received), ledger_->worker(), view.bytes(), where));
    return;
  }
  ledger_->came(*posting, transfer);
  ledger_->finished(*posting, transfer);
}

void Progress::listen() {
  check_mpi(MPI_Irecv(heard_.data(), static_cast<int>(heard_.size()), MPI_CHAR, MPI_ANY_SOURCE,
                      kNoticeTag, notices_, &listening_),
            "listening for failures");
}

void Progress::hear() {
  int done = 0;
  check_mpi(MPI_Test(&listening_, &done, MPI_STATUS_IGNORE), "listening for failures");
  if (done == 0) return;
  peers_know_ = true;
  fail(heard_.data());
}

void Progress::rest(std::int64_t idle_looks) {
  std::unique_lock lock(mutex_);
  if (!requests_.empty() && idle_looks < kEagerLooks) {
    lock.unlock();
    std::this_thread::yield();
    return;
  }
  changed_.wait_for(lock, requests_.empty() ? kIdlePause : kBusyPause,
                    [this] { return leaving_ || !cause_.empty() || !armed_.empty(); });
}

void Progress::wind_up() {
  const std::string open = ledger_->first_open();
  if (healthy() && !open.empty())
    fail(fmt::format("worker {} left before {} was complete", ledger_->worker(), open));
  try {
    if (healthy()) {
      close();
    } else {
      session_->failed = true;
      session_->abandoned = !drain();
    }
  } catch (const Error&) {
    session_->abandoned = true;  // the first cause has been reported; this one adds nothing
  }
}

bool Progress::healthy() {
  const std::lock_guard lock(mutex_);
  return cause_.empty();
}

void Progress::close() {
  check_mpi(MPI_Cancel(&listening_), "closing");
  check_mpi(MPI_Wait(&listening_, MPI_STATUS_IGNORE), "closing");
  check_mpi(MPI_Comm_free(&data_), "closing");
  check_mpi(MPI_Comm_free(&notices_), "closing");
}

bool Progress::drain() {
  const Clock::time_point end = Clock::now() + grace_;
  std::vector<MPI_Request> others = peers_know_ ? std::vector<MPI_Request>() : tell_peers();
  if (listening_ != MPI_REQUEST_NULL) {
    check_mpi(MPI_Cancel(&listening_), "cancelling");
    others.push_back(listening_);
  }
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    // OpenMPI cannot cancel sends.
    if (in_flight_[i].posting->is_send(in_flight_[i].transfer)) continue;
    check_mpi(MPI_Cancel(&requests_[i]), "cancelling");
  }
  for (int told = 0;;) {
    collect();
    check_mpi(
        MPI_Testall(static_cast<int>(others.size()), others.data(), &told, MPI_STATUSES_IGNORE),
        "telling the peers");
    if (told != 0 && requests_.empty()) return true;
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(kBusyPause);
  }
}

std::vector<MPI_Request> Progress::tell_peers() {
  {
    const std::lock_guard lock(mutex_);
    cause_.copy(told_.data(), told_.size() - 1);
  }
  std::vector<MPI_Request> telling;
  for (std::int32_t peer = 0; peer < session_->size; ++peer) {
    if (peer == session_->rank) continue;
    check_mpi(MPI_Isend(told_.data(), static_cast<int>(told_.size()), MPI_CHAR, peer, kNoticeTag,
                        notices_, &telling.emplace_back(MPI_REQUEST_NULL)),
              "telling the peers");
  }
  return telling;
}

}  // namespace libra::mpi
