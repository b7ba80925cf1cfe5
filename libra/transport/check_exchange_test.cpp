#include "libra/transport/check_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "libra/base/error.h"

namespace libra {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string complaint(const Exchange& exchange) {
  try {
    check_exchange(exchange, 1, 4);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

std::string complaint_about_send(std::int32_t peer, const StridedView& view) {
  return complaint({.tag = {}, .sends = {{.peer = peer, .local = view}}, .receives = {}});
}

TEST(CheckExchange, TakesWhatIsLegal) {
  std::byte byte{};
  EXPECT_THAT(complaint({}), IsEmpty());
  EXPECT_THAT(complaint_about_send(3, {&byte, 4, 16, 16}), IsEmpty());
  EXPECT_THAT(complaint_about_send(1, {&byte, 1, 16, 0}), IsEmpty());
  EXPECT_THAT(complaint_about_send(0, {nullptr, 0, 16, 16}), IsEmpty());
  EXPECT_THAT(complaint_about_send(0, {nullptr, 7, 0, 16}), IsEmpty());
}

TEST(CheckExchange, NamesThePeerThatIsNotThere) {
  EXPECT_THAT(complaint_about_send(4, {}), HasSubstr("there is no worker 4; peers are [0, 4)"));
  EXPECT_THAT(complaint_about_send(-1, {}), HasSubstr("there is no worker -1"));
  const Exchange receives{.tag = {}, .sends = {}, .receives = {{}, {.peer = 9, .local = {}}}};
  EXPECT_THAT(complaint(receives), HasSubstr("receive 1: there is no worker 9"));
}

TEST(CheckExchange, NamesWhatIsWrongWithAView) {
  std::byte byte{};
  EXPECT_THAT(complaint_about_send(0, {&byte, -1, 16, 16}), HasSubstr("rows must not be negative"));
  EXPECT_THAT(complaint_about_send(0, {&byte, 1, -16, 16}), HasSubstr("row_bytes must not be"));
  EXPECT_THAT(complaint_about_send(0, {&byte, 2, 16, 15}), HasSubstr("rows overlap"));
  EXPECT_THAT(complaint_about_send(0, {nullptr, 2, 16, 16}), HasSubstr("data must not be null"));
}

TEST(CheckExchange, NamesTheFieldOfTheTagThatIsOutOfBounds) {
  EXPECT_THAT(complaint({.tag = {.step = -1}, .sends = {}, .receives = {}}), HasSubstr("step -1"));
  EXPECT_THAT(complaint({.tag = {.chunk = 256}, .sends = {}, .receives = {}}),
              HasSubstr("chunk 256 of the tag"));
  EXPECT_THAT(complaint({.tag = {.round = 16}, .sends = {}, .receives = {}}),
              HasSubstr("must be in [0, 16)"));
}

TEST(CheckOptions, ADeadlineIsPositive) {
  EXPECT_NO_THROW(check_options({}));
  EXPECT_THROW(check_options({.deadline = std::chrono::milliseconds(0)}), ConfigError);
}

}  // namespace
}  // namespace libra
