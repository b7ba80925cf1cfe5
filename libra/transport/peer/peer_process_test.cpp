// Workers that are processes, one program started several times: this program starts itself.
#include "libra/transport/peer/peer_process.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/cuda/device.h"
#include "libra/transport/peer/peer_cases.h"

namespace libra {
namespace {

constexpr int kNoDevice = 77;  // exit status
constexpr const char* kWorkerFlag = "--as-worker";

// argv of a worker: program, flag, case, worker, workers, pool, seed.
int run_as_worker(char** argv) {
  if (device_count() == 0) return kNoDevice;
  const peer::PeerCase& test = peer::peer_cases()[at(std::atoi(argv[2]))];
  const std::int32_t worker = std::atoi(argv[3]);
  const std::int32_t device = worker % device_count();
  std::string error;
  try {
    error =
        play(test, make_peer_process({argv[5], worker, std::atoi(argv[4]), device}, test.options()),
             device, std::strtoull(argv[6], nullptr, 10));
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  if (!error.empty()) std::cerr << "worker " << worker << ": " << error << '\n';
  return error.empty() ? 0 : 1;
}

// Exit status of each worker's process; -1 if it did not exit by itself.
std::vector<int> run_workers(std::size_t index, std::int32_t workers, std::uint64_t seed) {
  const std::string pool = fmt::format("test-{}-{}-{}", getpid(), index, workers);
  std::vector<pid_t> processes;
  for (std::int32_t worker = 0; worker < workers; ++worker) {
    std::vector<std::string> words = {
        "/proc/self/exe",        kWorkerFlag, std::to_string(index), std::to_string(worker),
        std::to_string(workers), pool,        std::to_string(seed)};
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t process = 0;
    if (posix_spawn(&process, words[0].c_str(), nullptr, nullptr, arguments.data(), environ) == 0) {
      processes.push_back(process);
    }
  }
  std::vector<int> statuses;
  statuses.reserve(processes.size());
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return statuses;
}

class PeerProcesses : public ::testing::TestWithParam<std::tuple<std::size_t, std::int32_t>> {};

TEST_P(PeerProcesses, Hold) {
  const auto& [index, workers] = GetParam();
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const std::vector<int> statuses = run_workers(index, workers, seed);
  ASSERT_EQ(statuses.size(), at(workers));
  if (statuses[0] == kNoDevice) GTEST_SKIP() << "no GPU that a process can use";
  for (const int status : statuses) EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, PeerProcesses,
                         ::testing::Combine(::testing::Range(std::size_t{0},
                                                             peer::peer_cases().size()),
                                            ::testing::Values(1, 2, 4)),
                         [](const auto& test) { return std::apply(peer::label, test.param); });

}  // namespace
}  // namespace libra

int main(int argc, char** argv) {
  if (argc == 7 && std::string(argv[1]) == libra::kWorkerFlag) return libra::run_as_worker(argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
