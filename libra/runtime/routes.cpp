#include "libra/runtime/routes.h"

#include <utility>

#include "libra/base/index.h"
#include "libra/runtime/tensor_views.h"

namespace libra {

Routes::Routes(const PoolPlan& plan, const WorkerProgram& program,
               std::vector<WorkerMemory> memories)
    : program_(program), heads_(plan.heads()), memories_(std::move(memories)) {}

std::int32_t Routes::own_q_head(std::int32_t shard, std::int32_t chunk) const {
  return shard * heads_.shard_heads + chunk * heads_.chunk_heads - program_.first_q_head;
}

std::int32_t Routes::own_kv_head(std::int32_t kv_shard, std::int32_t kv_chunk) const {
  return kv_shard * heads_.kv_shard_heads + kv_chunk * heads_.kv_chunk_heads -
         program_.first_kv_head;
}

// This worker is the move's destination: the rows lie in its arena.
Transfer Routes::arena_end(const RowMove& move, std::int32_t peer, ArenaRegion region,
                           std::int32_t slot, std::byte* arena) const {
  return {peer, region_rows(arena, memory().arena.*region, slot, move.to_row, move.rows), -1};
}

// This worker is the move's home: `own` are its rows, the peer's lie in the peer's arena.
Transfer Routes::own_end(const RowMove& move, const TensorView& own, ArenaRegion region,
                         std::int32_t slot) const {
  const Region& peer_region = memories_[at(move.to)].arena.*region;
  return {move.to, as_rows(own), peer_region.row(slot, move.to_row)};
}

void Routes::send_queries(Exchange& exchange, const TensorView& own, ArenaRegion region,
                          std::int32_t chunk) const {
  for (const RowMove& move : program_.q_out) {
    const TensorView rows = sub_tensor(own, move.from_row, move.rows, own_q_head(move.shard, chunk),
                                       heads_.chunk_heads);
    exchange.sends.push_back(own_end(move, rows, region, chunk));
  }
}

void Routes::receive_queries(Exchange& exchange, ArenaRegion region, std::int32_t chunk,
                             std::byte* arena) const {
  for (const RowMove& move : program_.q_in) {
    exchange.receives.push_back(arena_end(move, move.from, region, chunk, arena));
  }
}

void Routes::send_keys(Exchange& exchange, const TensorView& own, ArenaRegion region,
                       std::int32_t kv_chunk) const {
  for (const RowMove& move : program_.kv_out) {
    const TensorView rows = sub_tensor(own, move.from_row, move.rows,
                                       own_kv_head(move.shard, kv_chunk), heads_.kv_chunk_heads);
    exchange.sends.push_back(own_end(move, rows, region, kv_chunk));
  }
}

void Routes::receive_keys(Exchange& exchange, ArenaRegion region, std::int32_t kv_chunk,
                          std::byte* arena) const {
  for (const RowMove& move : program_.kv_in) {
    exchange.receives.push_back(arena_end(move, move.from, region, kv_chunk, arena));
  }
}

void Routes::return_sends(Exchange& exchange, ArenaRegion region, std::int32_t chunk,
                          std::byte* arena) const {
  for (const RowMove& move : program_.q_in) {
    exchange.sends.push_back(arena_end(move, move.from, region, chunk, arena));
  }
}

void Routes::return_receives(Exchange& exchange, const TensorView& own, ArenaRegion region,
                             std::int32_t chunk) const {
  for (const RowMove& move : program_.q_out) {
    const TensorView rows = sub_tensor(own, move.from_row, move.rows, own_q_head(move.shard, chunk),
                                       heads_.chunk_heads);
    exchange.receives.push_back(own_end(move, rows, region, chunk));
  }
}

void Routes::send_gradients(Exchange& exchange, ArenaRegion region, std::int32_t kv_chunk,
                            std::byte* arena) const {
  for (const RowMove& move : program_.kv_in) {
    exchange.sends.push_back(arena_end(move, move.from, region, kv_chunk, arena));
  }
}

void Routes::receive_gradients(Exchange& exchange, ArenaRegion region, ArenaRegion home_region,
                               std::int32_t kv_chunk, std::byte* arena) const {
  receive_staged(exchange, program_.kv_out, {region, home_region}, kv_chunk, arena);
}

void Routes::receive_staged(Exchange& exchange, const std::vector<RowMove>& moves,
                            const Staging& staging, std::int32_t kv_chunk, std::byte* arena) const {
  std::int64_t staged = 0;
  for (const RowMove& move : moves) {
    const Region& peer_region = memories_[at(move.to)].arena.*staging.at_peer;
    exchange.receives.push_back(
        {move.to, region_rows(arena, memory().arena.*staging.here, kv_chunk, staged, move.rows),
         peer_region.row(kv_chunk, move.to_row)});
    staged += move.rows;
  }
}

void Routes::pass_on_keys(Exchange& exchange, ArenaRegion region, std::int32_t kv_chunk,
                          std::byte* arena) const {
  for (const RowMove& move : program_.relay_out) {
    exchange.sends.push_back(
        {move.to, region_rows(arena, memory().arena.*region, kv_chunk, move.from_row, move.rows),
         -1});
  }
}

void Routes::receive_passed_keys(Exchange& exchange, ArenaRegion region, std::int32_t kv_chunk,
                                 std::byte* arena) const {
  for (const RowMove& move : program_.relay_in) {
    const Region& peer_region = memories_[at(move.from)].arena.*region;
    Transfer received = arena_end(move, move.from, region, kv_chunk, arena);
    received.peer_arena_offset = peer_region.row(kv_chunk, move.from_row);
    exchange.receives.push_back(received);
  }
}

void Routes::send_shares(Exchange& exchange, ArenaRegion region, std::int32_t kv_chunk,
                         std::byte* arena) const {
  for (const RowMove& move : program_.relay_in) {
    exchange.sends.push_back(arena_end(move, move.from, region, kv_chunk, arena));
  }
}

void Routes::receive_shares(Exchange& exchange, ArenaRegion region, ArenaRegion relay_region,
                            std::int32_t kv_chunk, std::byte* arena) const {
  receive_staged(exchange, program_.relay_out, {region, relay_region}, kv_chunk, arena);
}

}  // namespace libra
