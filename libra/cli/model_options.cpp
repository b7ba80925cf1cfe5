#include "libra/cli/model_options.h"

#include <fmt/format.h>

#include "libra/cli/option_parsing.h"

namespace libra::cli {
namespace {

void add_heads(CLI::App& app, const std::string& name, std::optional<std::int32_t>& target,
               const std::string& help) {
  add_parsed(
      app, name, [&target](const std::string& text) { target = parse_count(text); }, help)
      ->type_name("N")
      ->group("Model");
}

std::string known_names() {
  std::string names;
  for (const ModelShape& model : known_models()) {
    names += names.empty() ? "" : " | ";
    names += model.name;
  }
  return names;
}

}  // namespace

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option("--model", options.model, known_names())
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Model");
  add_heads(app, "--q-heads", options.q_heads, "Query heads, in place of the model's");
  add_heads(app, "--kv-heads", options.kv_heads, "KV heads, likewise");
  add_heads(app, "--head-dim", options.head_dim, "Dimension of a query or key head, likewise");
  add_heads(app, "--value-dim", options.value_dim,
            "Dimension of a value head (default: as --head-dim)");
}

ModelShape resolve(const ModelOptions& options) {
  ModelShape model = find_model(options.model);
  AttentionShape& heads = model.attention;
  heads.q_heads = options.q_heads.value_or(heads.q_heads);
  heads.kv_heads = options.kv_heads.value_or(heads.kv_heads);
  heads.value_dim = options.value_dim.value_or(options.head_dim.value_or(heads.value_dim));
  heads.head_dim = options.head_dim.value_or(heads.head_dim);
  validate(heads);
  if (model != find_model(options.model)) model.name += ", changed";
  return model;
}

Json to_json(const ModelShape& model) {
  return {{"name", model.name},
          {"layers", model.layers},
          {"q_heads", model.attention.q_heads},
          {"kv_heads", model.attention.kv_heads},
          {"head_dim", model.attention.head_dim},
          {"value_dim", model.attention.value_dim}};
}

std::string describe(const ModelShape& model) {
  const AttentionShape& heads = model.attention;
  std::string text = fmt::format("{}: {} query heads, {} KV heads, dim {}", model.name,
                                 heads.q_heads, heads.kv_heads, heads.head_dim);
  if (heads.value_dim != heads.head_dim) text += fmt::format(" (values {})", heads.value_dim);
  return text;
}

}  // namespace libra::cli
