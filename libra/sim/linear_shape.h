// What a model's layers hold besides core attention: projections, feed-forward or experts, the
// output head. From it follow FLOPs and bytes of a training step that no plan changes.
//
//   const LinearShape linear = find_linear_shape("qwen3-30b-a3b");
//   linear.active_parameters(model);   // of one layer, for one token
#pragma once

#include <cstdint>
#include <string_view>

#include "libra/cost/model_shape.h"

namespace libra {

struct LinearShape {
  std::int64_t intermediate = 0;       ///< width of the feed-forward part, or of one expert
  std::int32_t experts = 0;            ///< of a layer; 0: dense
  std::int32_t experts_per_token = 1;  ///< of which a token uses so many
  std::int64_t vocabulary = 0;

  bool moe() const { return experts > 0; }

  /// Parameters of one layer's projections (Q, K, V, O), norms left out.
  std::int64_t projection_parameters(const ModelShape& model) const;
  /// Of one feed-forward part or expert: gate, up and down.
  std::int64_t expert_parameters(const ModelShape& model) const {
    return 3 * model.hidden * intermediate;
  }
  /// Of one layer, as one token uses them: projections, its experts, the router.
  std::int64_t active_parameters(const ModelShape& model) const;
  /// Of embedding or output head.
  std::int64_t head_parameters(const ModelShape& model) const { return vocabulary * model.hidden; }

  friend bool operator==(const LinearShape&, const LinearShape&) = default;
};

/// Of a known model (model_shape.h). Throws ConfigError for another name.
LinearShape find_linear_shape(std::string_view model);

}  // namespace libra
