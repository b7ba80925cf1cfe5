// What goes on behind an MPI endpoint: the thread that makes all MPI calls. Private to this folder.
//
// It holds the ledger for as long as requests may exist; so a failure is reported only when they
// have ended, or when MPI is abandoned.
#pragma once

#include <mpi.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libra/transport/host_transport.h"
#include "libra/transport/ledger.h"
#include "libra/transport/mpi/session_state.h"

namespace libra::mpi {

class Progress final : public Mover {
 public:
  /// Collective. Throws TransportError if MPI cannot give what is needed.
  Progress(std::shared_ptr<SessionState> session, std::shared_ptr<Ledger> ledger,
           const TransportOptions& options);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void arm(const std::shared_ptr<Posting>& posting) override;
  void fail(const std::string& cause) override;
  void leave() override;

 private:
  using Clock = std::chrono::steady_clock;

  /// A request's transfer, at the request's index.
  struct InFlight {
    std::shared_ptr<Posting> posting;
    std::size_t transfer = 0;
  };
  using Notice = std::array<char, 512>;  // a cause on its way to the peers, zero-terminated

  void run();
  void serve();  // until leave or failure
  void start(const std::shared_ptr<Posting>& posting);
  bool collect();  // what has ended; whether anything has
  void finish(const InFlight& in_flight, const MPI_Status& status, int error);
  void listen();
  void hear();  // a peer's failure
  void rest(std::int64_t idle_looks);
  bool healthy();
  void wind_up();
  void close();
  bool drain();  // whether no request is left
  std::vector<MPI_Request> tell_peers();

  std::shared_ptr<SessionState> session_;
  std::shared_ptr<Ledger> ledger_;
  std::chrono::milliseconds grace_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Posting>> armed_;  // guarded; not started yet
  std::string cause_;                            // guarded; empty: no failure
  bool leaving_ = false;                         // guarded

  // The thread's own.
  MPI_Comm data_ = MPI_COMM_NULL;
  MPI_Comm notices_ = MPI_COMM_NULL;
  std::vector<MPI_Request> requests_;
  std::vector<InFlight> in_flight_;
  MPI_Request listening_ = MPI_REQUEST_NULL;
  Notice heard_{};
  Notice told_{};
  bool peers_know_ = false;

  std::thread thread_;
};

}  // namespace libra::mpi
