#include "slots/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slots/window.h"

namespace weir::slots {
namespace {

using testing::HasSubstr;

Config Good() { return {.name = "pay", .window_size = 4'000, .max_per_window = 100}; }

TEST(CheckConfig, NamesTheFieldThatIsWrong) {
  const auto message = [](Config config) {
    Result<Config> checked = CheckConfig(std::move(config));
    return checked.ok() ? std::string("ok") : checked.error().message;
  };
  EXPECT_EQ(message(Good()), "ok");
  Config config = Good();
  config.name = "";
  EXPECT_THAT(message(config), HasSubstr("configName"));
  config = Good();
  config.window_size = kMaxWindowSize + 1;
  EXPECT_THAT(message(config), HasSubstr("windowSize"));
  config = Good();
  config.max_per_window = 0;
  EXPECT_THAT(message(config), HasSubstr("maxPerWindow"));
  config = Good();
  config.headroom = -1;
  EXPECT_THAT(message(config), HasSubstr("headroom"));
  config = Good();
  config.tenants = {{"a", 0}};
  EXPECT_THAT(message(config), HasSubstr("tenants.a"));
  config.tenants = {{"a", 1}, {"a", 2}};
  EXPECT_THAT(message(config), HasSubstr("twice"));
}

TEST(CheckConfig, SortsTenantsAndAddsTheOthers) {
  Config config = Good();
  config.tenants = {{"b", 2}, {"a", 5}};
  const Config checked = *CheckConfig(config);
  EXPECT_THAT(checked.tenants, testing::ElementsAre(testing::Pair("*", 1), testing::Pair("a", 5),
                                                    testing::Pair("b", 2)));
  EXPECT_EQ(ClassOf(checked, "a"), "a");
  EXPECT_EQ(ClassOf(checked, "zzz"), "*");
  EXPECT_EQ(ClassOf(checked, ""), "*");
  EXPECT_EQ(ClassOf(Good(), "a"), "");
}

TEST(CheckName, TakesTextAndNothingElse) {
  EXPECT_TRUE(CheckName("eventId", "zamówienie-1 ✓ 😀", 200).ok());
  EXPECT_TRUE(CheckName("eventId", std::string(200, 'x'), 200).ok());
  EXPECT_FALSE(CheckName("eventId", std::string(201, 'x'), 200).ok());
  EXPECT_TRUE(CheckName("eventId", " 7", 200).ok());
  EXPECT_FALSE(CheckName("eventId", "  ", 200).ok());
  for (const std::string& text :
       {std::string(), std::string("a\0b", 3), std::string("a\nb"), std::string("\x7f"),
        std::string("\xc3"), std::string("\xc0\xaf"), std::string("\xed\xa0\x80"),
        std::string("\xf5\x80\x80\x80"), std::string("\xe0\x80\x80"), std::string("\xff")}) {
    EXPECT_FALSE(CheckName("eventId", text, 200).ok());
  }
}

TEST(Window, BeginsAtTheTimeRoundedDown) {
  EXPECT_EQ(WindowOf(12'000, 4'000), 12'000);
  EXPECT_EQ(WindowOf(12'001, 4'000), 12'000);
  EXPECT_EQ(WindowOf(15'999, 4'000), 12'000);
  EXPECT_EQ(WindowOf(16'000, 4'000), 16'000);
  EXPECT_EQ(WindowOf(0, 4'000), 0);
}

TEST(Window, ArithmeticIsExactAtItsBounds) {
  // The largest product: 10^9 × 31 days in ms = 2.678 × 10^18 < 2^63.
  EXPECT_EQ(FirstWindowCapacity(kMaxPerWindow, 0, kMaxWindowSize), kMaxPerWindow);
  EXPECT_EQ(FirstWindowCapacity(kMaxPerWindow, kMaxWindowSize / 2, kMaxWindowSize),
            kMaxPerWindow / 2);
  EXPECT_EQ(FirstWindowCapacity(10, 3'000, 4'000), 2);
  EXPECT_EQ(ScheduledIn(4'000, 4'000, 1'000, 4'001), 4'001);
  EXPECT_EQ(ScheduledIn(4'000, 4'000, 7'999, 123'456'789), 7'999);
  EXPECT_EQ(ShareOf(10, 1, 3), 3);
  EXPECT_EQ(ShareOf(2, 1, 3), 1);
}

}  // namespace
}  // namespace weir::slots
