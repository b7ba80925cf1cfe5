#include "tests/faulty_transport.h"

#include <future>
#include <stdexcept>
#include <thread>
#include <utility>

namespace libra::testing {
namespace {

TaskQueue& queue(Stream& stream) { return dynamic_cast<TaskQueue&>(stream); }

}  // namespace

const std::vector<std::int64_t>& Places::of(FaultKind kind) const {
  switch (kind) {
    case FaultKind::kLost:
    case FaultKind::kDuplicated:
    case FaultKind::kCut:
      return sending;
    case FaultKind::kDelayed:
    case FaultKind::kRepeated:
    case FaultKind::kFails:
    case FaultKind::kStalls:
      return posts;
    default:
      return all;
  }
}

FaultyTransport::FaultyTransport(std::unique_ptr<Transport> inner, Fault fault)
    : TransportDecorator(std::move(inner)), fault_(std::move(fault)) {}

bool FaultyTransport::strikes_here() {
  const auto place = static_cast<std::int64_t>(places_.all.size());
  places_.all.push_back(place);
  if (place != fault_.place) return false;
  fault_.struck();
  return true;
}

void FaultyTransport::poll() {
  if (strikes_here()) strike_host();
  TransportDecorator::poll();
}

Handle FaultyTransport::post(const Exchange& exchange, Stream& stream) {
  if (exchange.tag.phase == Phase::kAgree) return TransportDecorator::post(exchange, stream);
  const bool strikes = strikes_here();
  places_.posts.push_back(places_.all.back());
  if (!exchange.sends.empty()) places_.sending.push_back(places_.all.back());
  return strikes ? post_wrongly(exchange, stream) : TransportDecorator::post(exchange, stream);
}

void FaultyTransport::strike_host() const {
  if (fault_.kind == FaultKind::kThrows) throw std::runtime_error(kInjected);
  if (fault_.kind == FaultKind::kStops || fault_.kind == FaultKind::kLeaves) fault_.halt();
}

// Up to twice the deadline late. Every other time the worker's stream goes on meanwhile, and later
// messages overtake this one.
Handle FaultyTransport::post_late(const Exchange& exchange, Stream& stream) {
  const auto most = static_cast<std::uint64_t>(2 * fault_.deadline.count());
  const std::chrono::milliseconds delay(static_cast<std::int64_t>(fault_.draw / 2 % most));
  if (fault_.draw % 2 == 0) {
    queue(stream).enqueue([delay] { std::this_thread::sleep_for(delay); });
    return TransportDecorator::post(exchange, stream);
  }
  const auto turn = std::make_shared<std::promise<void>>();
  queue(stream).enqueue([turn] { turn->set_value(); });
  queue(stream).enqueue_on_failure([turn] {
    try {
      turn->set_value();
    } catch (const std::future_error&) {  // its turn had come before the failure
    }
  });
  late_.emplace();
  late_->enqueue([turn, delay] {
    turn->get_future().wait();
    std::this_thread::sleep_for(delay);
  });
  return TransportDecorator::post(exchange, *late_);
}

Handle FaultyTransport::post_wrongly(const Exchange& exchange, Stream& stream) {
  strike_host();
  Exchange changed = exchange;
  const auto message =
      static_cast<std::ptrdiff_t>(exchange.sends.empty() ? 0 : fault_.draw % exchange.sends.size());
  switch (fault_.kind) {
    case FaultKind::kDelayed:
      return post_late(exchange, stream);
    case FaultKind::kLost:
      changed.sends.erase(changed.sends.begin() + message);
      break;
    case FaultKind::kDuplicated:
      changed.sends.insert(changed.sends.begin() + message, *(exchange.sends.begin() + message));
      break;
    case FaultKind::kRepeated:
      TransportDecorator::post(exchange, stream);
      break;
    case FaultKind::kCut:
      (changed.sends.begin() + message)->local.rows -= 1;
      break;
    case FaultKind::kFails:
      queue(stream).enqueue([] { throw std::runtime_error(kInjected); });
      break;
    case FaultKind::kStalls:
      queue(stream).enqueue(fault_.halt);
      break;
    default:
      break;
  }
  return TransportDecorator::post(changed, stream);
}

}  // namespace libra::testing
