// The options that say whose attention is planned: a model known by name, or heads given one by
// one.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "libra/cli/report.h"
#include "libra/cost/model_shape.h"

namespace libra::cli {

struct ModelOptions {
  std::string model = "qwen3-8b";
  std::optional<std::int32_t> q_heads, kv_heads, head_dim, value_dim;  ///< in place of the model's
};

/// --model, --q-heads, --kv-heads, --head-dim, --value-dim.
void add_model_options(CLI::App& app, ModelOptions& options);

/// The model with what was given in place of its own; value_dim follows head_dim unless given.
/// Throws ConfigError for an unknown name and heads that break a rule.
ModelShape resolve(const ModelOptions& options);

Json to_json(const ModelShape& model);

/// "qwen3-8b: 32 query heads, 8 KV heads, dim 128".
std::string describe(const ModelShape& model);

}  // namespace libra::cli
