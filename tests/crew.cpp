#include "tests/crew.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <thread>
#include <vector>

#include "libra/base/index.h"

namespace libra {
namespace {

int status_of(const std::function<void(std::int32_t)>& body, std::int32_t worker) {
  try {
    body(worker);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "worker {}: {}\n", worker, error.what());
    return 1;
  }
}

}  // namespace

Crew::Crew(Kind kind, std::int32_t workers) : kind_(kind), workers_(workers), barrier_(1) {
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&barrier_[0], &attributes, static_cast<unsigned>(workers));
  pthread_barrierattr_destroy(&attributes);
}

void Crew::run(const std::function<void(std::int32_t)>& body) {
  if (kind_ == Kind::kProcesses) {
    run_processes(body);
    return;
  }
  std::vector<std::jthread> threads;
  threads.reserve(at(workers_));
  for (std::int32_t worker = 0; worker < workers_; ++worker) {
    threads.emplace_back([&body, worker] { body(worker); });
  }
}

void Crew::run_processes(const std::function<void(std::int32_t)>& body) const {
  std::fflush(nullptr);  // or every child would print it, too
  std::vector<pid_t> processes;
  processes.reserve(at(workers_));
  for (std::int32_t worker = 0; worker < workers_; ++worker) {
    const pid_t process = fork();
    if (process == 0) {
      const int status = status_of(body, worker);
      std::fflush(nullptr);
      _exit(status);
    }
    processes.push_back(process);
  }
  bool failed = false;
  for (std::size_t ended = 0; ended < processes.size(); ++ended) {
    int status = 0;
    wait(&status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    if (!failed) {
      for (const pid_t process : processes) kill(process, SIGKILL);
    }
    failed = true;
  }
  if (failed) throw Error("a worker's process failed");
}

}  // namespace libra
