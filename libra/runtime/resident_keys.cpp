#include "libra/runtime/resident_keys.h"

#include "libra/runtime/tensor_views.h"

namespace libra {

void copy_resident_keys(const WorkerProgram& program, const Routes& routes, std::int32_t kv_chunk,
                        const OwnKeys& own, std::byte* arena, AttentionBackend& backend,
                        Stream& stream) {
  const ArenaLayout& layout = routes.memory().arena;
  const std::int32_t heads = routes.heads().kv_chunk_heads;
  for (const RowMove& move : program.kv_copies) {
    const std::int32_t head = routes.own_kv_head(move.shard, kv_chunk);
    backend.copy(as_rows(sub_tensor(own.k, move.from_row, move.rows, head, heads)),
                 region_rows(arena, layout.k, kv_chunk, move.to_row, move.rows), stream);
    backend.copy(as_rows(sub_tensor(own.v, move.from_row, move.rows, head, heads)),
                 region_rows(arena, layout.v, kv_chunk, move.to_row, move.rows), stream);
  }
}

}  // namespace libra
