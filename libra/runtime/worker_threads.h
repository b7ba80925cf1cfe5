// For tests: the workers of a pool as threads.
//
//   auto endpoints = make_inproc_group(4);
//   const std::vector<std::string> errors = on_every_worker(endpoints, [&](Transport& transport) {
//     WorkerRun run(plan, {transport, backend});
//     ...
//   });
//   // errors[w]: what worker w threw; empty if nothing
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "libra/transport/transport.h"

namespace libra::testing {

/// Runs body(transport) for every endpoint, each on a thread of its own, and waits for all.
template <typename Body>
std::vector<std::string> on_every_worker(const std::vector<std::unique_ptr<Transport>>& endpoints,
                                         const Body& body) {
  std::vector<std::string> errors(endpoints.size());
  std::vector<std::thread> threads;
  threads.reserve(endpoints.size());
  for (std::size_t worker = 0; worker < endpoints.size(); ++worker) {
    threads.emplace_back([&body, &transport = *endpoints[worker], &error = errors[worker]] {
      try {
        body(transport);
      } catch (const std::exception& thrown) {
        error = thrown.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace libra::testing
