#include "libra/cost/model_shape.h"

#include <fmt/format.h>

#include "libra/base/error.h"

namespace libra {

const std::vector<ModelShape>& known_models() {
  static const std::vector<ModelShape> models = {{"qwen3-8b", 36, 4096, {32, 8, 128, 128}},
                                                 {"qwen3-30b-a3b", 48, 2048, {32, 4, 128, 128}},
                                                 {"qwen3-235b-a22b", 94, 4096, {64, 4, 128, 128}}};
  return models;
}

ModelShape find_model(std::string_view name) {
  std::string names;
  for (const ModelShape& model : known_models()) {
    if (model.name == name) return model;
    names += (names.empty() ? "" : ", ") + model.name;
  }
  throw ConfigError(fmt::format("'{}' is not a known model: use one of {}", name, names));
}

}  // namespace libra
