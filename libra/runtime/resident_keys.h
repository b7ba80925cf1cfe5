// Keys of a fetched group that its destination holds itself: copied into the arena, between the
// fetched ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libra/runtime/routes.h"

namespace libra {

struct OwnKeys {
  const TensorView& k;
  const TensorView& v;
};

/// Enqueues the copies of KV chunk `kv_chunk`, from own K and V into the arena's slot for it.
void copy_resident_keys(const WorkerProgram& program, const Routes& routes, std::int32_t kv_chunk,
                        const OwnKeys& own, std::byte* arena, AttentionBackend& backend,
                        Stream& stream);

}  // namespace libra
