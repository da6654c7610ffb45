#include "telemetry/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

namespace weir::telemetry {
namespace {

class LogTest : public ::testing::Test {
 protected:
  LogTest() { EXPECT_EQ(pipe(pipe_.data()), 0); }
  ~LogTest() override {
    FlushLog();
    ConfigureLog({});
    close(pipe_[0]);
    close(pipe_[1]);
  }

  std::string Written() {
    FlushLog();
    std::string text(65536, '\0');
    const ssize_t n = read(pipe_[0], text.data(), text.size());
    text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return text;
  }

  std::array<int, 2> pipe_{};
};

TEST_F(LogTest, WritesJsonWithEscapedValues) {
  ConfigureLog({.level = Level::kInfo, .format = LogFormat::kJson, .fd = pipe_[1]});
  Log(Level::kInfo, "limited",
      {{"key", "a\"b\n"}, {"cost", std::int64_t{-3}}, {"shadow", true}, {"ratio", 0.5}});
  const std::string line = Written();
  EXPECT_NE(line.find(R"("level":"info","message":"limited","key":"a\"b\n","cost":-3,)"
                      R"("shadow":true,"ratio":0.5})"
                      "\n"),
            std::string::npos)
      << line;
}

TEST_F(LogTest, ConsoleLinesCannotBeForged) {
  ConfigureLog({.level = Level::kInfo, .format = LogFormat::kConsole, .fd = pipe_[1]});
  Log(Level::kWarn, "limited", {{"key", "x\n2026-01-01 info forged"}});
  const std::string line = Written();
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
}

TEST_F(LogTest, AFlushEndsThoughNobodyReads) {
  ConfigureLog({.level = Level::kInfo, .format = LogFormat::kConsole, .fd = pipe_[1]});
  const std::string long_text(1000, 'x');
  constexpr int kLines = 100;  // more than a pipe holds, which is 64 KiB
  for (int i = 0; i < kLines; ++i) Log(Level::kInfo, long_text);
  FlushLog();
  int lines = 0;
  for (std::array<char, 4096> some{}; lines < kLines;) {
    const ssize_t n = read(pipe_[0], some.data(), some.size());
    ASSERT_GT(n, 0);
    lines += static_cast<int>(std::count(some.begin(), some.begin() + n, '\n'));
  }
}

TEST_F(LogTest, LeavesOutLowerLevels) {
  ConfigureLog({.level = Level::kWarn, .format = LogFormat::kConsole, .fd = pipe_[1]});
  EXPECT_FALSE(LogEnabled(Level::kInfo));
  Log(Level::kInfo, "one");
  Log(Level::kError, "two");
  const std::string text = Written();
  EXPECT_EQ(text.find("one"), std::string::npos);
  EXPECT_NE(text.find("two"), std::string::npos);
}

TEST_F(LogTest, LinesOfSeveralThreadsStayWhole) {
  ConfigureLog({.level = Level::kInfo, .format = LogFormat::kJson, .fd = pipe_[1]});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 50; ++i) Log(Level::kInfo, "m", {{"n", std::int64_t{i}}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = Written();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 200);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_EQ(text[begin], '{');
    EXPECT_EQ(text[end - 1], '}');
    begin = end + 1;
  }
}

TEST(LogThrottle, LetsSoManyThroughEachSecond) {
  LogThrottle throttle(2);
  EXPECT_TRUE(throttle.Allow(7));
  EXPECT_TRUE(throttle.Allow(7));
  EXPECT_FALSE(throttle.Allow(7));
  EXPECT_TRUE(throttle.Allow(8));
}

}  // namespace
}  // namespace weir::telemetry
