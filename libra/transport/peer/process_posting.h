// One worker's half of an exchange between processes, as it was posted: who does what with whom.
// Private to this folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "libra/cuda/device_clock.h"
#include "libra/transport/peer/arenas.h"
#include "libra/transport/transport.h"

namespace libra::peer {

enum class Role : std::uint8_t {
  kCopies,   ///< this side copies once the other is ready
  kSignals,  ///< this side says that it is ready; the other copies
  kMails,    ///< host memory to host memory
};

/// The transfers of a posting with one peer in one direction.
struct Group {
  std::int32_t peer = 0;
  bool send = false;
  Role role = Role::kCopies;
  std::vector<Transfer> transfers;
  std::uint32_t* ready = nullptr;  ///< on the host, by its addresses
  std::uint32_t* done = nullptr;
  std::shared_ptr<PooledEvent> end;  ///< null if the peer copies
};

/// Unchanged while it is open, but for what the transport's mutex guards.
struct ProcessPosting {
  std::int64_t id = 0;
  Tag tag;
  std::uint32_t value = 0;
  std::shared_ptr<PooledEvent> reached;  ///< the stream has come to the post
  std::vector<Group> groups;
  ExchangeRecord record;
  // Guarded:
  bool begun = false;     ///< `reached` has been enqueued
  bool enqueued = false;  ///< and everything else
  bool armed = false;     ///< the stream has come to it, and the deadline counts
  std::chrono::steady_clock::time_point armed_at;
};

/// The exchange's transfers, by peer and direction; flags and events are still to come. Both ends
/// of a transfer come to the same roles. Throws ConfigError for transfers that cannot be: neither
/// end in an arena, or pushed and pulled ones under one tag.
std::vector<Group> groups_of(const Exchange& exchange, const Arenas& arenas, std::int32_t worker);

/// The word that this side's streams wait for; null if they wait for none.
std::uint32_t* awaited_flag(const Group& group);

/// Whether the posting is complete at this end.
bool is_done(const ProcessPosting& posting);

}  // namespace libra::peer
