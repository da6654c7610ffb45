#include "slots/api/large_bodies.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace weir::slots {
namespace {

TEST(LargeBodies, AreReadOnAThreadOfTheirOwnInOrder) {
  std::vector<std::string> bodies;
  std::vector<std::thread::id> threads;
  {
    LargeBodies large;
    for (const char letter : {'a', 'b'}) {
      std::string body(100'000, letter);
      large.Read(body, {}, [&](std::string_view read, const http::Reply&) {
        bodies.emplace_back(read.substr(0, 1));
        threads.push_back(std::this_thread::get_id());
      });
      body.assign(body.size(), 'x');  // what was given is the caller's again
    }
  }
  EXPECT_EQ(bodies, (std::vector<std::string>{"a", "b"}));
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
  std::atomic<int> status = 0;
  {
    LargeBodies large;
    large.Read(
        std::string(100'000, 'x'),
        [&](const http::Response& response) { status = response.status; },
        [](std::string_view, const http::Reply&) { throw std::runtime_error("no"); });
  }
  EXPECT_EQ(status, 500);
}

}  // namespace
}  // namespace weir::slots
