#include "libra/cost/model_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libra/base/error.h"

namespace libra {
namespace {

TEST(FindModel, KnowsTheThreeQwenModels) {
  EXPECT_EQ(find_model("qwen3-8b"), (ModelShape{"qwen3-8b", 36, 4096, {32, 8, 128, 128}}));
  EXPECT_EQ(find_model("qwen3-30b-a3b"),
            (ModelShape{"qwen3-30b-a3b", 48, 2048, {32, 4, 128, 128}}));
  EXPECT_EQ(find_model("qwen3-235b-a22b"),
            (ModelShape{"qwen3-235b-a22b", 94, 4096, {64, 4, 128, 128}}));
}

TEST(FindModel, ListsTheNamesWhenAskedForAnother) {
  try {
    find_model("qwen3-9b");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "'qwen3-9b' is not a known model: use one of qwen3-8b, qwen3-30b-a3b, "
                 "qwen3-235b-a22b");
  }
}

TEST(KnownModels, AreAllValid) {
  EXPECT_EQ(known_models().size(), 3u);
  for (const ModelShape& model : known_models()) EXPECT_NO_THROW(validate(model.attention));
}

}  // namespace
}  // namespace libra
