// What a transformer's attention layers look like: the models known by name.
//
//   const ModelShape model = find_model("qwen3-8b");
//   model.attention.q_heads;  // 32
//
// Not a description of the whole model: Libra moves core attention only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libra/cost/attention_shape.h"

namespace libra {

struct ModelShape {
  std::string name;
  std::int32_t layers = 0;  ///< all of them with attention of this shape
  std::int64_t hidden = 0;  ///< width of the residual stream, not q_heads * head_dim
  AttentionShape attention;

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

/// qwen3-8b, qwen3-30b-a3b, qwen3-235b-a22b.
const std::vector<ModelShape>& known_models();

/// The known model of exactly this name. Throws ConfigError that lists the names.
ModelShape find_model(std::string_view name);

}  // namespace libra
