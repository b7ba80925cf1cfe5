// What transports report in the same words.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

#include "libra/transport/transport.h"

namespace libra {

/// A worker waited for peers' halves of an exchange until its deadline.
std::string overdue_message(std::int32_t worker, std::chrono::milliseconds deadline,
                            const std::set<std::int32_t>& peers, const Tag& tag);

/// The two ends of a transfer do not agree on its size.
std::string mismatch_message(std::int32_t sender, std::int64_t sent_bytes, std::int32_t receiver,
                             std::int64_t expected_bytes, const Tag& tag);

/// The two ends of a transfer do not mean the same place of an arena.
std::string place_message(std::int32_t sender, std::int32_t receiver, const Tag& tag);

/// What a worker says after a failure, its own or another's.
std::string failed_message(std::int32_t worker, const std::string& cause);

}  // namespace libra
