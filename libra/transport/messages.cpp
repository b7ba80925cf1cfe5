#include "libra/transport/messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace libra {

std::string overdue_message(std::int32_t worker, std::chrono::milliseconds deadline,
                            const std::set<std::int32_t>& peers, const Tag& tag) {
  return fmt::format(
      "worker {} waited {} ms for worker{} {} in {}; did it die, or does it run another plan?",
      worker, deadline.count(), peers.size() > 1 ? "s" : "", fmt::join(peers, ", "), describe(tag));
}

std::string mismatch_message(std::int32_t sender, std::int64_t sent_bytes, std::int32_t receiver,
                             std::int64_t expected_bytes, const Tag& tag) {
  return fmt::format(
      "worker {} sends {} bytes to worker {}, which expects {}, in {}: do they run one plan?",
      sender, sent_bytes, receiver, expected_bytes, describe(tag));
}

std::string place_message(std::int32_t sender, std::int32_t receiver, const Tag& tag) {
  return fmt::format(
      "worker {} sends to worker {}, which expects other rows, in {}: was a message lost or sent "
      "twice, or do they run two plans?",
      sender, receiver, describe(tag));
}

std::string failed_message(std::int32_t worker, const std::string& cause) {
  return fmt::format("worker {} can exchange no more: {}", worker, cause);
}

}  // namespace libra
