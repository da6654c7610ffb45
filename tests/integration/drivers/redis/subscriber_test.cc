#include "drivers/redis/subscriber.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <string>
#include <vector>

#include "support/redis_server.h"

namespace weir::redis {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

template <typename Condition>
void RunUntil(boost::asio::io_context& io, Condition condition) {
  io.restart();
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!condition() && std::chrono::steady_clock::now() < deadline) io.run_one_for(1s);
}

TEST(RedisSubscriber, HearsItsChannelsAlsoAfterTheServerWasAway) {
  test::RedisServer server;
  boost::asio::io_context io;
  ConnectionOptions options = ConnectionOptions::Of(*ParseUrl(server.url()));
  options.command_timeout = 200ms;
  std::vector<std::string> heard;
  int subscribed = 0;
  int lost = 0;
  Subscriber subscriber(io, options, {"a", "b"},
                        {.message =
                             [&](std::string_view channel, std::string_view message) {
                               heard.push_back(std::string(channel) + "=" + std::string(message));
                             },
                         .subscribed = [&] { ++subscribed; },
                         .lost = [&](const Error&) { ++lost; }});
  RunUntil(io, [&] { return subscribed == 1; });
  ASSERT_EQ(subscribed, 1);
  EXPECT_TRUE(subscriber.subscribed());
  server.Command({"PUBLISH", "b", "one"});
  server.Command({"PUBLISH", "c", "not mine"});
  RunUntil(io, [&] { return heard.size() == 1; });
  EXPECT_EQ(heard, std::vector<std::string>{"b=one"});

  // Several liveness checks are answered; no connection is lost.
  io.restart();
  io.run_for(700ms);
  EXPECT_EQ(lost, 0);

  server.Pause();
  RunUntil(io, [&] { return lost > 0; });
  EXPECT_GT(lost, 0) << "a server that stands still went unnoticed";
  server.Kill();
  server.Start();
  RunUntil(io, [&] { return subscribed == 2; });
  server.Command({"PUBLISH", "a", "two"});
  RunUntil(io, [&] { return heard.size() == 2; });
  EXPECT_EQ(heard.back(), "a=two");
}

}  // namespace
}  // namespace weir::redis
