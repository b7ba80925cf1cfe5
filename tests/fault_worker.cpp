#include "tests/fault_worker.h"

#include <fmt/format.h>

#include <iterator>
#include <regex>

#include "libra/runtime/agreement.h"
#include "tests/layer_driver.h"
#include "tests/seat.h"

namespace libra::testing {
namespace {

using Clock = std::chrono::steady_clock;

void run_passes(const Scenario& scenario, std::uint64_t fingerprint, LayerDriver& layer, Seat& seat,
                Account& account) {
  try {
    Agreement(fingerprint, seat.context, seat.stream).check();
    const auto pipeliner = seat.pipeliner(scenario.plan);
    seat.transport.poll();
    account.forward_begun = true;
    layer.forward(*pipeliner, seat.stream);
    seat.transport.poll();
    account.backward_begun = true;
    layer.backward(*pipeliner, seat.stream);
    seat.stream.synchronize();
    seat.transport.poll();
  } catch (const Left&) {
    account.died = true;
  } catch (const std::exception& error) {
    account.error_at = Clock::now();
    account.error = error.what();
  }
}

// If it was the transport that threw, the cause may be in the worker's own stream.
void settle(Seat& seat, Account& account) {
  try {
    seat.stream.synchronize();
  } catch (const std::exception& error) {
    if (!account.error.empty()) return;
    account.error_at = Clock::now();
    account.error = error.what();
  }
}

// Right results, or none that anybody takes for one.
std::string wrong_results(const LayerDriver& layer, const Account& account) {
  std::string wrong;
  const bool failed = !account.error.empty();
  if (account.forward_begun && !(failed && layer.forward_is_nan())) {
    wrong += layer.wrong_in_forward();
  }
  if (account.backward_begun && !(failed && layer.backward_is_nan())) {
    wrong += layer.wrong_in_backward();
  }
  return wrong;
}

}  // namespace

Account take_part(const Scenario& scenario, std::unique_ptr<Transport>& endpoint,
                  const std::function<std::uint64_t()>& fingerprint) {
  Account account;
  LayerDriver layer(scenario.plan, endpoint->worker(), scenario.seed);  // outlives the stream
  {
    Seat seat(*endpoint);
    run_passes(scenario, fingerprint(), layer, seat, account);
    account.places = dynamic_cast<FaultyTransport&>(*endpoint).places();
    endpoint.reset();
    settle(seat, account);
  }
  if (!account.died) account.wrong = wrong_results(layer, account);
  return account;
}

bool is_precise(const std::string& error, std::int32_t worker) {
  static const std::regex place(
      "step [0-9]+, (agreement on the plan|forward dispatch|forward return|backward "
      "dispatch|backward return|"
      "gradient return|forward pass|backward pass)");
  static const std::regex workers("worker[s]? [0-9]+");
  if (error.find("hold different plans") != std::string::npos) return true;
  const std::string self = fmt::format("worker {}", worker);
  const auto found = std::sregex_iterator(error.begin(), error.end(), workers);
  return std::regex_search(error, place) && error.find(self) != std::string::npos &&
         std::distance(found, std::sregex_iterator()) >= 2;
}

bool blames(const std::string& error, std::int32_t worker) {
  return std::regex_search(error, std::regex(fmt::format("worker[s]? ([0-9]+, )*{}\\b", worker)));
}

}  // namespace libra::testing
