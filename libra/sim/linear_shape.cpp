#include "libra/sim/linear_shape.h"

#include <algorithm>

#include "libra/base/error.h"

namespace libra {

std::int64_t LinearShape::projection_parameters(const ModelShape& model) const {
  const AttentionShape& heads = model.attention;
  const std::int64_t q = std::int64_t{heads.q_heads} * heads.head_dim;
  const std::int64_t k = std::int64_t{heads.kv_heads} * heads.head_dim;
  const std::int64_t v = std::int64_t{heads.kv_heads} * heads.value_dim;
  const std::int64_t o = std::int64_t{heads.q_heads} * heads.value_dim;
  return model.hidden * (q + k + v + o);
}

std::int64_t LinearShape::active_parameters(const ModelShape& model) const {
  const std::int64_t router = model.hidden * experts;
  return projection_parameters(model) + experts_per_token * expert_parameters(model) + router;
}

LinearShape find_linear_shape(std::string_view model) {
  constexpr std::int64_t kQwenVocabulary = 151'936;
  if (model == "qwen3-8b") return {12'288, 0, 1, kQwenVocabulary};
  if (model == "qwen3-30b-a3b") return {768, 128, 8, kQwenVocabulary};
  if (model == "qwen3-235b-a22b") return {1'536, 128, 8, kQwenVocabulary};
  find_model(model);  // its error lists the names
  throw ConfigError("the linear layers of this model are not known to the simulator");
}

}  // namespace libra
