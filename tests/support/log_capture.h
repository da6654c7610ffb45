#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "telemetry/log.h"

namespace weir::test {

/// Captures the log's lines as JSON, from level info, for its lifetime.
class LogCapture {
 public:
  LogCapture() {
    EXPECT_EQ(pipe(pipe_.data()), 0);
    telemetry::ConfigureLog(
        {.level = telemetry::Level::kInfo, .format = telemetry::LogFormat::kJson, .fd = pipe_[1]});
  }
  ~LogCapture() {
    telemetry::FlushLog();
    telemetry::ConfigureLog({});
    close(pipe_[0]);
    close(pipe_[1]);
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// What was logged since the last call, and a line that keeps the pipe from being empty.
  std::string Take() {
    telemetry::Log(telemetry::Level::kError, "end");
    telemetry::FlushLog();
    std::string text(65536, '\0');
    const ssize_t n = read(pipe_[0], text.data(), text.size());
    text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return text;
  }

 private:
  std::array<int, 2> pipe_{};
};

}  // namespace weir::test
