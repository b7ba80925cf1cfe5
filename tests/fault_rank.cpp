// fault_rank SEED: a rank of an MPI job of three, one of which comes to grief: it is killed or
// stopped by a signal, throws, loses a message, holds another plan. Every other rank says what it
// saw and ends the job, as programs do. Started by mpi_faults.sh, which judges.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "libra/transport/mpi/transport.h"
#include "tests/fault_worker.h"

namespace libra::testing {
namespace {

constexpr std::chrono::milliseconds kDeadline{2000};

Scenario scenario_for(std::uint64_t seed, std::int32_t workers) {
  Scenario scenario = draw_scenario(seed);
  for (std::uint64_t next = seed << 20U; scenario.plan.workers() != workers; ++next) {
    scenario = draw_scenario(next);
  }
  scenario.seed = seed;
  scenario.kind = static_cast<FaultKind>(seed % kFaultKinds);
  // MPI delivers once: in place of messages that come twice, two more ranks that stop or die.
  if (scenario.kind == FaultKind::kDuplicated) scenario.kind = FaultKind::kStops;
  if (scenario.kind == FaultKind::kRepeated) scenario.kind = FaultKind::kLeaves;
  scenario.deadline = kDeadline;
  return scenario;
}

// Of the drawn worker; where it has none for its fault, it throws.
std::int64_t place_of(Scenario& scenario, const Places& places) {
  if (places.of(scenario.kind).empty()) scenario.kind = FaultKind::kThrows;
  const std::vector<std::int64_t>& own = places.of(scenario.kind);
  return own[static_cast<std::size_t>(scenario.place * static_cast<double>(own.size()))];
}

// Dies, or stands still for three deadlines: longer than anybody waits. (Where nobody needs the
// rank any more, nobody notices; MPI would wait for it at the end for ever.)
void halt(FaultKind kind) {
  if (kind == FaultKind::kLeaves) raise(SIGKILL);
  const std::string wake = fmt::format("(sleep {}; kill -CONT {}) >/dev/null 2>&1 </dev/null &",
                                       3 * kDeadline.count() / 1000, getpid());
  if (std::system(wake.c_str()) == 0) raise(SIGSTOP);
}

Account play(const Scenario& scenario, const MpiSession& session, std::int64_t place) {
  const FaultyTransport::Fault fault{scenario.kind,
                                     place,
                                     scenario.draw,
                                     scenario.deadline,
                                     [&scenario] { halt(scenario.kind); },
                                     [&scenario] {
                                       fmt::print("struck: {}\n", describe(scenario));
                                       std::fflush(stdout);
                                     }};
  std::unique_ptr<Transport> endpoint =
      std::make_unique<FaultyTransport>(make_mpi_transport(session, {scenario.deadline}), fault);
  const bool other = place >= 0 && scenario.kind == FaultKind::kOtherPlan;
  return take_part(scenario, endpoint,
                   [&] { return plan_fingerprint(other ? other_plan(scenario) : scenario.plan); });
}

int run(std::uint64_t seed, MpiSession& session) {
  Scenario scenario = scenario_for(seed, session.size());
  const Account calm = play(scenario, session, -1);
  std::int64_t place = -1;
  if (session.rank() == scenario.worker) place = place_of(scenario, calm.places);
  const Account account = play(scenario, session, place);
  const std::string wrong = calm.error + calm.wrong + account.wrong;
  if (!wrong.empty()) fmt::print("rank {}: WRONG: {}\n", session.rank(), wrong);
  const bool own_fault = session.rank() == scenario.worker;
  if (account.error.empty()) {
    fmt::print("rank {}: right\n", session.rank());
  } else {
    const bool precise = own_fault || is_precise(account.error, session.rank());
    fmt::print("rank {}: {}: {}\n", session.rank(), precise ? "error" : "VAGUE", account.error);
  }
  std::fflush(stdout);
  if (!account.error.empty()) session.end_job(1);
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace libra::testing

int main(int argc, char** argv) {
  libra::MpiSession session(&argc, &argv);
  if (argc != 2) return 2;
  return libra::testing::run(std::strtoull(argv[1], nullptr, 10), session);
}
