#include "slots/api/large_bodies.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace weir::slots {
namespace {

TEST(LargeBodies, AreReadOnAThreadOfTheirOwnInOrder) {
  const std::vector<std::string> bodies = {std::string(100'000, 'a'), std::string(100'000, 'b')};
  std::vector<std::string_view> seen;
  std::vector<std::thread::id> threads;
  {
    LargeBodies large;
    for (const std::string& body : bodies) {
      large.Read(body, {}, [&](std::string_view read, const http::Reply&) {
        seen.push_back(read);
        threads.push_back(std::this_thread::get_id());
      });
    }
  }
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].data(), bodies[0].data());  // nothing is copied
  EXPECT_EQ(seen[1].data(), bodies[1].data());
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_NE(threads[0], std::this_thread::get_id());
  EXPECT_EQ(threads[0], threads[1]);
}

TEST(LargeBodies, SmallOnesAreReadAtOnce) {
  LargeBodies large;
  std::thread::id thread;
  large.Read("{}", {}, [&](std::string_view body, const http::Reply&) {
    EXPECT_EQ(body, "{}");
    thread = std::this_thread::get_id();
  });
  EXPECT_EQ(thread, std::this_thread::get_id());
}

TEST(LargeBodies, WhatThrowsIsAnswered) {
  const std::string body(100'000, 'x');
  std::atomic<int> status = 0;
  {
    LargeBodies large;
    large.Read(
        body, [&](const http::Response& response) { status = response.status; },
        [](std::string_view, const http::Reply&) { throw std::runtime_error("no"); });
  }
  EXPECT_EQ(status, 500);
}

// A service that stops closes it before the objects that the replies refer to are destroyed.
TEST(LargeBodies, WhenItIsClosedAllRepliesAreLetGo) {
  const std::string body(100'000, 'x');
  const auto held = std::make_shared<int>();
  const http::Reply reply = [held](const http::Response&) {};
  LargeBodies large;
  std::latch started(1);
  std::latch closing(1);
  large.Read(body, reply, [&](std::string_view, const http::Reply&) {
    started.count_down();
    closing.wait();
  });
  for (int i = 0; i < 10; ++i) large.Read(body, reply, [](std::string_view, const http::Reply&) {});
  started.wait();
  EXPECT_EQ(held.use_count(), 14);  // here, in `reply`, eleven times there, and where one is read
  closing.count_down();
  large.Close();
  EXPECT_EQ(held.use_count(), 2);
  large.Read(body, reply, [](std::string_view, const http::Reply&) { FAIL(); });
  EXPECT_EQ(held.use_count(), 2);
}

}  // namespace
}  // namespace weir::slots
