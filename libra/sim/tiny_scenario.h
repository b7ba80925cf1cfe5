// For this room's tests: a job so small, on a device so plain, that every figure can be worked out
// by hand.
//
// One query-key pair of one head takes 1 us forward and 2.5 us backward, whatever its shape; calls
// cost nothing. Two heads with keys of their own; a row of Q, K, V or O has 4 bytes a head.
// NVLink moves 1 GB/s and the network 0.1 GB/s, so a byte takes 1 ns or 10 ns; no latency.
// Additions of gradients are free.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "libra/corpus/packed_sequence.h"
#include "libra/sim/scenario.h"

namespace libra::testing {

inline DeviceProfile flat_device() {
  DeviceProfileData data;
  data.name = "flat";
  // head_dim + value_dim = 4: 8 FLOPs per pair forward, at 8e6 FLOP/s; rates are whole GFLOP/s, so
  // the cluster's device_speed brings them down.
  data.forward.rates = {{1}, {1}, {1}, {8}};
  data.backward.rates = {{1}, {1}, {1}, {8}};
  data.add_mb_per_s = 1'000'000'000'000;
  return DeviceProfile(data);
}

/// Two replicas of two workers, one node, four sequences of 8 tokens: two GA indices, P = 2.
inline Scenario tiny_scenario() {
  Scenario scenario;
  scenario.model = {"tiny", 2, 4, {2, 2, 2, 2}};
  scenario.linear = {4, 0, 1, 10};
  scenario.cluster = {"toy", 4, 1, 0.1, 0, 0, "h200", 0.001, 600, 141, 0, 0, 0};
  scenario.seq_tokens = 8;
  scenario.gbs = 4;
  scenario.dp = 2;
  scenario.pool = 2;
  scenario.plan.shape = scenario.model.attention;
  scenario.plan.cp = 2;
  scenario.plan.block_tokens = 2;
  scenario.plan.head_shards = 1;
  scenario.plan.chunks = 2;
  return scenario;
}

inline PackedSequence sequence(std::vector<std::int64_t> samples, std::int64_t tokens = 8) {
  return {tokens, std::move(samples)};
}

constexpr double kMicrosecond = 1e-6;
constexpr double kNanosecond = 1e-9;

}  // namespace libra::testing
