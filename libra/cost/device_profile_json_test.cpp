#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "libra/base/error.h"
#include "libra/cost/device_profile.h"
#include "libra/cost/temp_file.h"

namespace libra {
namespace {

using testing::HasSubstr;

DeviceProfileData toy() {
  DeviceProfileData data;
  data.name = "toy";
  data.source = "made up";
  data.launch_ps = 1'500'000;
  data.multiprocessors = 4;
  data.block_tokens = 64;
  data.add_mb_per_s = 1'234'500;
  data.forward = {250'000, {{64, 128}, {256}, {1, 2}, {1000, 2000, 3001, 4000}}};
  data.backward = {500'001, {{64}, {256}, {1}, {999}}};
  return data;
}

std::string complaint_about_file(const std::string& text) {
  const TempFile file(text);
  try {
    load_device_profile(file.path());
  } catch (const InputError& error) {
    EXPECT_EQ(error.where(), file.path());
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) ADD_FAILURE() << from << " is not in the text";
  return text.replace(at, from.size(), to);
}

TEST(LoadDeviceProfile, ReadsBackWhatFormatDeviceProfileWrote) {
  const TempFile file(format_device_profile(toy()));
  EXPECT_EQ(load_device_profile(file.path()).data(), toy());
}

TEST(LoadDeviceProfile, RoundTripsTheBuiltInProfile) {
  const DeviceProfileData built_in = find_device_profile("h200").data();
  const TempFile file(format_device_profile(built_in));
  EXPECT_EQ(load_device_profile(file.path()).data(), built_in);
  EXPECT_EQ(load_device_profile("h200").data(), built_in);
}

TEST(FindDeviceProfile, ListsTheNamesWhenAskedForAnother) {
  try {
    find_device_profile("h900");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "'h900' is not a known device profile: use one of h200");
  }
}

TEST(LoadDeviceProfile, NamesTheFieldThatIsWrong) {
  const struct {
    const char* from;
    const char* to;
    const char* complaint;
  } cases[] = {
      {"\"multiprocessors\": 4,", "", "field 'multiprocessors' is missing"},
      {"\"multiprocessors\": 4", "\"multiprocessors\": 0", "multiprocessors is 0: must be in [1,"},
      {"\"multiprocessors\": 4", "\"multiprocessors\": \"4\"", "must be a whole number"},
      {"\"launch_us\": 1.5", "\"launch_us\": -1.5", "field 'launch_us' is -1.5: must not be"},
      {"\"add_gb_per_s\": 1234.5", "\"add_gb_per_s\": 0",
       "field 'add_gb_per_s' is 0: must be at least 0.001"},
      {"\"launch_us\": 1.5", "\"launch_us\": 1e300", "launch_ps is 1000000000000000: must be in"},
      {"\"entry_ns\": 250.0", "\"entry_ns\": -1", "field 'forward.entry_ns' is -1"},
      {"\"entry_ns\": 250.0", "\"entry_ns\": NaN", "is not JSON: byte"},
      {"500.001", "[]", "field 'backward.entry_ns' must be a number"},
      {"0.999", "null", "field 'backward.tflops' must hold numbers only"},
      {"0.999", "0", "backward.tflops has 0: must be in"},
      {"0.999", "-1", "backward.tflops has -1: must be in"},
      {"0.999", "1, 2", "field 'backward.tflops' must be nested arrays"},
      {"3.001", "[3]", "field 'forward.tflops' must hold numbers only"},
      {"\"toy\"", "\"\"", "name is empty"},
      {"\"source\"", "\"sauce\"", "field 'sauce' is not known: use name, source,"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.to);
    EXPECT_THAT(complaint_about_file(replaced(format_device_profile(toy()), c.from, c.to)),
                HasSubstr(c.complaint));
  }
}

TEST(LoadDeviceProfile, NamesTheAxisThatIsWrong) {
  DeviceProfileData data = toy();
  data.forward.rates.queries = {128, 64};
  EXPECT_THAT(complaint_about_file(format_device_profile(data)),
              HasSubstr("forward.queries must rise: 64 after 128"));
  EXPECT_THAT(complaint_about_file(replaced(format_device_profile(toy()), "128", "12.8")),
              HasSubstr("field 'forward.queries' must hold whole numbers only"));
}

TEST(LoadDeviceProfile, RefusesWhatIsNoJsonObjectOrNoFile) {
  EXPECT_THAT(complaint_about_file("rates, rates"), HasSubstr("is not JSON"));
  EXPECT_THAT(complaint_about_file("7"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(complaint_about_file(R"({"name": "x", "source": "y", "launch_us": 1,
      "multiprocessors": 1, "block_tokens": 1, "add_gb_per_s": 1, "forward": 3})"),
              HasSubstr("field 'forward' must be a JSON object"));
  EXPECT_THROW(load_device_profile("no/such/file.json"), InputError);
}

}  // namespace
}  // namespace libra
