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
  BoundedWrite() { signal(SIGPIPE, SIG_IGN); }
  ~BoundedWrite() override {
    Close(0);
    Close(1);
  }

  void Close(std::size_t end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }
  Status Write(const std::string& bytes, steady_clock::duration patience) {
    return writer_.Write(bytes, steady_clock::now() + patience);
  }

  static std::array<int, 2> Pipe() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(pipe(ends.data()), 0);
    return ends;
  }

  std::array<int, 2> ends_ = Pipe();
  LineWriter writer_{ends_[1]};
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

// It would be read as one line with the one that was cut, and be lost with it.
TEST_F(BoundedWrite, BeginsALineOfItsOwnBehindOneThatWasCut) {
  ASSERT_FALSE(Write(std::string(1 << 20, 'x') + '\n', 50ms).ok());
  EXPECT_FALSE(Write("not at all\n", 0ms).ok());
  std::string got;
  std::thread reader([&] {
    std::array<char, 65'536> buffer;
    while (!got.ends_with("last\n")) {
      const ssize_t n = read(ends_[0], buffer.data(), buffer.size());
      if (n <= 0) return;
      got.append(buffer.data(), static_cast<std::size_t>(n));
    }
  });
  EXPECT_TRUE(Write("next\n", 60s).ok());
  EXPECT_TRUE(Write("last\n", 60s).ok());
  reader.join();
  EXPECT_TRUE(got.ends_with("x\nnext\nlast\n")) << got.substr(got.find('\n'));
}

TEST_F(BoundedWrite, SaysThatTheReaderIsGone) {
  Close(0);
  const Status written = Write("x", 60s);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace weir
