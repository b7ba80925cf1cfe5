// One worker's transfers for each phase of a pass, built from its program and the arenas' layouts.
//
// Two kinds of legs, each named from this worker's side:
//
//   out leg    own tensor -> peer's arena    (Q, K, V, dO; with refetch O and LSE)
//   home leg   peer's arena -> own tensor    (O, LSE, dQ; dK and dV into own staging)
//
// and their counterparts, arena side. Relays add a third, from arena to arena: keys that are passed
// on, and their gradients, which come into the relay's staging. Both ends list the same moves in
// the plan's order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libra/plan/memory_plan.h"
#include "libra/runtime/worker_program.h"
#include "libra/transport/transport.h"

namespace libra {

class Routes {
 public:
  /// A region of the arena, by name: &ArenaLayout::q.
  using ArenaRegion = Region ArenaLayout::*;

  /// `memories`: of every worker of the pool, by worker. Keeps references to plan and program.
  Routes(const PoolPlan& plan, const WorkerProgram& program, std::vector<WorkerMemory> memories);

  /// Chunk `chunk` of own rows of a tensor with query heads goes out.
  void send_queries(Exchange& exchange, const TensorView& own, ArenaRegion region,
                    std::int32_t chunk) const;
  /// Foreign rows come into the arena.
  void receive_queries(Exchange& exchange, ArenaRegion region, std::int32_t chunk,
                       std::byte* arena) const;

  /// The same for K or V and KV chunk `kv_chunk`.
  void send_keys(Exchange& exchange, const TensorView& own, ArenaRegion region,
                 std::int32_t kv_chunk) const;
  void receive_keys(Exchange& exchange, ArenaRegion region, std::int32_t kv_chunk,
                    std::byte* arena) const;

  /// Results for foreign queries leave the arena.
  void return_sends(Exchange& exchange, ArenaRegion region, std::int32_t chunk,
                    std::byte* arena) const;

  /// Results for own queries come home.
  void return_receives(Exchange& exchange, const TensorView& own, ArenaRegion region,
                       std::int32_t chunk) const;

  /// dK or dV of fetched keys leaves `region`.
  void send_gradients(Exchange& exchange, ArenaRegion region, std::int32_t kv_chunk,
                      std::byte* arena) const;
  /// Those of own keys leave `region` of the peers' arenas and come into `home_region`, one stretch
  /// of rows per move, in kv_out order.
  void receive_gradients(Exchange& exchange, ArenaRegion region, ArenaRegion home_region,
                         std::int32_t kv_chunk, std::byte* arena) const;

  /// Fetched keys of `region` leave for others of the node.
  void pass_on_keys(Exchange& exchange, ArenaRegion region, std::int32_t kv_chunk,
                    std::byte* arena) const;
  /// Keys that a relay has fetched come into `region`.
  void receive_passed_keys(Exchange& exchange, ArenaRegion region, std::int32_t kv_chunk,
                           std::byte* arena) const;
  /// dK or dV of such keys leaves `region` for the relay,
  void send_shares(Exchange& exchange, ArenaRegion region, std::int32_t kv_chunk,
                   std::byte* arena) const;
  /// where it comes into `relay_region`, one stretch of rows per move, in relay_out order.
  void receive_shares(Exchange& exchange, ArenaRegion region, ArenaRegion relay_region,
                      std::int32_t kv_chunk, std::byte* arena) const;

  /// First head of a shard's chunk in the worker's own tensors.
  std::int32_t own_q_head(std::int32_t shard, std::int32_t chunk) const;
  std::int32_t own_kv_head(std::int32_t kv_shard, std::int32_t kv_chunk) const;

  const WorkerMemory& memory() const {
    return memories_[static_cast<std::size_t>(program_.worker)];
  }
  const HeadSplit& heads() const { return heads_; }

 private:
  struct Staging {
    ArenaRegion at_peer;
    ArenaRegion here;
  };

  void receive_staged(Exchange& exchange, const std::vector<RowMove>& moves, const Staging& staging,
                      std::int32_t kv_chunk, std::byte* arena) const;
  Transfer arena_end(const RowMove& move, std::int32_t peer, ArenaRegion region, std::int32_t slot,
                     std::byte* arena) const;
  Transfer own_end(const RowMove& move, const TensorView& own, ArenaRegion region,
                   std::int32_t slot) const;

  const WorkerProgram& program_;
  HeadSplit heads_;
  std::vector<WorkerMemory> memories_;
};

}  // namespace libra
