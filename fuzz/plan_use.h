// What anybody may do with a plan that was accepted.
#pragma once

#include "fuzz/expect.h"
#include "libra/plan/memory_plan.h"
#include "libra/plan/plan_binary.h"
#include "libra/plan/plan_json.h"
#include "libra/plan/traffic.h"
#include "libra/plan/validate.h"

namespace libra::fuzz {

/// It keeps every promise, and both written forms bring it back.
inline void use_plan(const PoolPlan& plan) {
  expect(validate(plan).empty(), "a plan that is accepted is valid");
  for (const WorkerMemory& memory : plan_memory(plan)) {
    expect(memory.arena.bytes >= 0 && memory.saved.bytes >= 0 && memory.scratch.bytes >= 0,
           "memory is not negative");
  }
  expect(forward_traffic(plan).total() >= 0 && backward_traffic(plan).total() >= 0,
         "traffic is not negative");
  expect(decode_plan(encode_plan(plan)) == plan, "the binary form brings it back");
  expect(plan_from_json(plan_to_json(plan)) == plan, "the JSON form brings it back");
}

}  // namespace libra::fuzz
