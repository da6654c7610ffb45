#include "base/bounded_write.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

namespace weir {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

class BoundedWrite : public ::testing::Test {
 protected:
  BoundedWrite() {
    signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(pipe(ends_.data()), 0);
  }
  ~BoundedWrite() override {
    Close(0);
    Close(1);
  }

  void Close(std::size_t end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }
  Status Write(const std::string& bytes, steady_clock::duration patience) {
    return WriteBy(ends_[1], bytes, steady_clock::now() + patience);
  }

  std::array<int, 2> ends_{-1, -1};
};

TEST_F(BoundedWrite, GivesUpWhenNobodyReads) {
  const Status written = Write(std::string(1 << 20, 'x'), 50ms);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, Code::kDeadlineExceeded);
}

TEST_F(BoundedWrite, WaitsForAReader) {
  const std::string bytes(300'000, 'x');  // more than a pipe holds
  std::size_t got = 0;
  std::thread reader([&] {
    std::array<char, 1000> buffer;
    while (got < bytes.size()) {
      const ssize_t n = read(ends_[0], buffer.data(), buffer.size());
      if (n <= 0) return;
      got += static_cast<std::size_t>(n);
    }
  });
  EXPECT_TRUE(Write(bytes, 60s).ok());
  reader.join();
  EXPECT_EQ(got, bytes.size());
}

TEST_F(BoundedWrite, SaysThatTheReaderIsGone) {
  Close(0);
  const Status written = Write("x", 60s);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace weir
