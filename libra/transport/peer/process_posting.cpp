#include "libra/transport/peer/process_posting.h"

#include <fmt/format.h>

#include <algorithm>

#include "libra/base/error.h"

namespace libra::peer {
namespace {

// Pulled if it leaves an arena, else pushed if it enters one.
Role role_of(const Transfer& transfer, bool send, const Arenas& arenas, std::int32_t worker) {
  const bool here = arenas.holds(transfer.local), there = transfer.peer_arena_offset >= 0;
  const bool from_arena = send ? here : there;
  const bool to_arena = send ? there : here;
  if (from_arena) return send ? Role::kSignals : Role::kCopies;
  if (to_arena) return send ? Role::kCopies : Role::kSignals;
  if (transfer.local.bytes() <= kMailBytes && transfer.local.rows <= 1) return Role::kMails;
  throw ConfigError(fmt::format(
      "worker {} and worker {}: neither end of {} bytes lies in an arena; at most {} may do so",
      worker, transfer.peer, transfer.local.bytes(), kMailBytes));
}

void add_to(std::vector<Group>& groups, const Transfer& transfer, bool send, Role role) {
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
    return group.peer == transfer.peer && group.send == send;
  });
  if (found == groups.end()) {
    groups.push_back({transfer.peer, send, role, {transfer}, nullptr, nullptr, nullptr});
  } else if (found->role == role) {
    found->transfers.push_back(transfer);
  } else {
    throw ConfigError(
        fmt::format("transfers with worker {} under one tag are pushed and pulled: use two tags",
                    transfer.peer));
  }
}

}  // namespace

std::vector<Group> groups_of(const Exchange& exchange, const Arenas& arenas, std::int32_t worker) {
  std::vector<Group> groups;
  for (const Transfer& transfer : exchange.sends) {
    add_to(groups, transfer, true, role_of(transfer, true, arenas, worker));
  }
  for (const Transfer& transfer : exchange.receives) {
    add_to(groups, transfer, false, role_of(transfer, false, arenas, worker));
  }
  return groups;
}

std::uint32_t* awaited_flag(const Group& group) {
  if (group.role == Role::kSignals) return group.done;
  return group.role == Role::kMails && group.send ? nullptr : group.ready;
}

bool is_done(const ProcessPosting& posting) {
  return posting.enqueued && has_happened(posting.reached->get()) &&
         std::all_of(posting.groups.begin(), posting.groups.end(), [&](const Group& group) {
           return group.end == nullptr ? has_come(*group.done, posting.value)
                                       : has_happened(group.end->get());
         });
}

}  // namespace libra::peer
