// A single server that loses its data, dies, hangs or disconnects: what a store answers in the
// meantime, and that it is exact again afterwards.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "algorithm/algorithms.h"
#include "integration/store/redis/client.h"
#include "support/certificates.h"
#include "support/redis_server.h"
#include "support/stopwatch.h"
#include "support/tcp_server.h"

namespace weir::store::redis {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

Options Quick(const std::string& url) {
  return {.url = url, .connections = 2, .connect_timeout = 200ms, .command_timeout = 200ms};
}

/// Checks until the store decides.
Client::Answer Patiently(Client& client, const Charge& charge) {
  Client::Answer answer;
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  do {
    answer = client.One(Op::kCharge, charge);
  } while (!answer.status.ok() && std::chrono::steady_clock::now() < deadline);
  return answer;
}

TEST(RedisRecovery, AFlushOfScriptsUnderLoadLosesAndRepeatsNothing) {
  test::RedisServer server;
  Client client({.url = server.url(), .connections = 2});
  const Quota quota = *Quota::FixedWindow(1000, kMaxWindow);
  constexpr std::size_t kBatches = 40;
  constexpr std::size_t kEach = 50;  // 2,000 checks for 1,000 permits
  const Charge charge{"hot", 1, &quota};
  std::vector<std::vector<Decision>> decisions(kBatches, std::vector<Decision>(kEach));
  std::vector<std::vector<Application>> batches(kBatches, std::vector<Application>(kEach));
  std::size_t done = 0;
  for (std::size_t b = 0; b < kBatches; ++b) {
    for (std::size_t i = 0; i < kEach; ++i) {
      batches[b][i].charges = std::span(&charge, 1);
      batches[b][i].decisions = std::span(&decisions[b][i], 1);
    }
    client.store().Apply(batches[b], [&done] { ++done; });
    client.Run([&, waited = 0]() mutable { return waited++ > 0; });
    if (b % 10 == 5) server.Command({"SCRIPT", "FLUSH"});
  }
  client.Run([&] { return done == kBatches; });
  ASSERT_EQ(done, kBatches);
  std::size_t admitted = 0;
  for (const auto& batch : batches) {
    for (const Application& application : batch) {
      ASSERT_TRUE(application.status.ok()) << application.status.error().message;
      admitted += application.applied ? 1 : 0;
    }
  }
  EXPECT_EQ(admitted, 1000U);
}

TEST(RedisRecovery, AFlushOfEverythingBeginsAnew) {
  test::RedisServer server;
  Client client({.url = server.url()});
  const Quota log = *Quota::SlidingLog(2, 1h);
  EXPECT_EQ(client.One(Op::kCharge, {"k", 2, &log}).decision.remaining, 0);
  EXPECT_FALSE(client.One(Op::kCharge, {"k", 1, &log}).applied);
  server.Command({"FLUSHALL"});
  EXPECT_EQ(client.One(Op::kCharge, {"k", 1, &log}).decision.remaining, 1);
  EXPECT_EQ(client.One(Op::kCharge, {"k", 1, &log}).decision.remaining, 0);
}

TEST(RedisRecovery, AKilledServerIsToldAndFoundAgain) {
  test::RedisServer server({.durable = true});
  Client client(Quick(server.url()));
  const Quota quota = *Quota::FixedWindow(3, kMaxWindow);
  const Charge charge{"k", 1, &quota};
  ASSERT_EQ(client.One(Op::kCharge, charge).decision.remaining, 2);
  server.Kill();
  const Client::Answer lost = client.One(Op::kCharge, charge);
  ASSERT_FALSE(lost.status.ok());
  EXPECT_EQ(lost.status.error().code, Code::kUnavailable);
  server.Start();
  // What was answered is in the append-only file; what was denied is not.
  EXPECT_EQ(Patiently(client, charge).decision.remaining, 1);
}

TEST(RedisRecovery, AServerThatStandsStillIsGivenUpInTime) {
  test::RedisServer server;
  Client client(Quick(server.url()));
  const Quota quota = *Quota::FixedWindow(1000, kMaxWindow);
  const Charge charge{"k", 1, &quota};
  ASSERT_TRUE(client.One(Op::kCharge, charge).status.ok());
  server.Pause();
  // Some wait for an answer until their timeout; those that arrive just after a failure fail
  // immediately.
  std::vector<std::chrono::nanoseconds> waits;
  for (int i = 0; i < 1000 && waits.size() < 7; ++i) {
    const test::Stopwatch watch;
    EXPECT_FALSE(client.One(Op::kCharge, charge).status.ok());
    const std::chrono::nanoseconds taken = watch.elapsed();
    if (taken > 100ms) waits.push_back(taken);
    std::this_thread::sleep_for(1ms);
  }
  ASSERT_EQ(waits.size(), 7U);
  std::sort(waits.begin(), waits.end());
  EXPECT_LT(waits[3], 200ms + 50ms);
  EXPECT_LT(waits.back(), 1s);  // this machine may stall, too
  server.Resume();
  EXPECT_TRUE(Patiently(client, charge).status.ok());
}

TEST(RedisRecovery, AnAnswerThatBreaksOffIsNoAnswer) {
  test::TcpServer server([](test::TcpConnection& peer) {
    peer.ReadThrough("EVALSHA");
    peer.Send("*2\r\n$8\r\n1234");
  });
  Client client(Quick("redis://127.0.0.1:" + std::to_string(server.port())));
  const Quota quota = *Quota::FixedWindow(3, kMaxWindow);
  const Client::Answer answer = client.One(Op::kCharge, {"k", 1, &quota});
  ASSERT_FALSE(answer.status.ok());
  EXPECT_EQ(answer.status.error().code, Code::kUnavailable);
}

TEST(RedisRecovery, AnAnswerThatMakesNoSenseIsAnError) {
  for (const char* reply :
       {"+OK\r\n", "*0\r\n", "*1\r\n$3\r\nabc\r\n", "*1\r\n$8\r\n12345678\r\n",
        "*2\r\n$8\r\n12345678\r\n$5\r\nwrong\r\n", "*3\r\n$5\r\nstale\r\n$1\r\nx\r\n$1\r\n0\r\n"}) {
    test::TcpServer server([reply](test::TcpConnection& peer) {
      peer.ReadThrough("EVALSHA");
      peer.Send(reply);
      peer.ReadAll();
    });
    Client client(Quick("redis://127.0.0.1:" + std::to_string(server.port())));
    const Quota quota = *Quota::FixedWindow(3, kMaxWindow);
    const Client::Answer answer = client.One(Op::kCharge, {"k", 1, &quota});
    ASSERT_FALSE(answer.status.ok()) << reply;
    EXPECT_EQ(answer.status.error().code, Code::kInternal) << reply;
  }
}

TEST(RedisRecovery, AnAnswerToASingleChargeThatMakesNoSenseIsAnError) {
  const std::string none("\0\0\0\0\0\0\xf8\x7f", 8);  // not a number
  for (const std::string& reply :
       {std::string("+OK\r\n"), std::string("*0\r\n"), std::string("$3\r\nabc\r\n"),
        "$8\r\n" + none + "\r\n", "$9\r\n" + std::string(8, '\0') + "x\r\n",
        "$8\r\n" + std::string(8, '\x7f') + "\r\n"}) {
    test::TcpServer server([reply](test::TcpConnection& peer) {
      peer.ReadThrough("EVALSHA");
      peer.Send(reply);
      peer.ReadAll();
    });
    Client client(Quick("redis://127.0.0.1:" + std::to_string(server.port())));
    const Quota quota = *Quota::FixedWindow(3, 1h);
    const Client::Answer answer = client.One(Op::kCharge, {"k", 1, &quota});
    ASSERT_FALSE(answer.status.ok()) << reply;
    EXPECT_EQ(answer.status.error().code, Code::kInternal) << reply;
  }
}

TEST(RedisRecovery, TlsAndAPasswordLeadToTheSameDecisions) {
  test::Certificates certificates;
  test::RedisServer server({.password = "secret", .certificates = &certificates});
  Client client({.url = server.url()});
  const Quota quota = *Quota::TokenBucket(2, 1, 1h);
  EXPECT_EQ(client.One(Op::kCharge, {"k", 2, &quota}).decision.remaining, 0);
  EXPECT_FALSE(client.One(Op::kCharge, {"k", 1, &quota}).applied);
}

TEST(RedisRecovery, KeysExpireByThemselves) {
  test::RedisServer server;
  Client client({.url = server.url()});
  const Quota quotas[] = {*Quota::TokenBucket(5, 5, 400ms), *Quota::FixedWindow(5, 400ms),
                          *Quota::SlidingLog(5, 400ms), *Quota::SlidingCounter(5, 200ms, 2),
                          *Quota::Concurrency(5, 400ms)};
  for (const Quota& quota : quotas) {
    const Client::Answer first = client.One(Op::kCharge, {"k", 3, &quota});
    ASSERT_TRUE(first.applied) << quota.ToString();
    // Neither refunds nor releases make a key permanent.
    client.One(Op::kRefund, {"k", 1, &quota});
    client.One(Op::kRelease, {"k", 1, &quota}, first.decision.lease);
    client.One(Op::kCharge, {"k", 1, &quota});
    client.One(Op::kRefund, {"k", 10, &quota});
  }
  // Five states, and the entries of two logs, which follow their headers. -1 would be "never".
  // Keys expire in steps of 2^34 ns = 17,180 ms: at most 400 + 17,180 ms and a rounding from now.
  for (const char* name : {"kt", "kf", "kl", "kc", "kn"}) {
    const int left = std::stoi(server.Command({"PTTL", std::string("weir:") + name}));
    EXPECT_GT(left, 0) << name;
    EXPECT_LE(left, 400 + 17'180 + 2) << name;
  }
  for (const char* name : {"kle", "kne"}) {
    const int left = std::stoi(server.Command({"PTTL", std::string("weir:") + name}));
    EXPECT_GT(left, 17'180 - 500) << name;
    EXPECT_LE(left, 400 + 2 * 17'180 + 2) << name;
  }
}

TEST(RedisRecovery, NoKeyExpiresBeforeItsStateEndsToCount) {
  test::RedisServer server;
  Client client({.url = server.url()});
  const auto expect_lasting = [&](const Quota& quota, const std::string& name) {
    const std::chrono::milliseconds left(std::stoll(server.Command({"PTTL", name})));
    const Client::Answer peek = client.One(Op::kPeek, {"k", 0, &quota});
    EXPECT_GE(left + 1ms, peek.decision.reset_after) << name << " " << quota.ToString();
  };
  // Every charge extends the state's life by 3 s, through several steps of expiry.
  const Quota bucket = *Quota::TokenBucket(1000, 1, 1s);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(client.One(Op::kCharge, {"k", 3, &bucket}).applied);
    expect_lasting(bucket, "weir:kt");
  }
  // A quota with a longer window takes over a state left by a shorter one, and continues it.
  const std::pair<const char*, std::vector<Quota>> changes[] = {
      {"f", {*Quota::FixedWindow(9, 10s), *Quota::FixedWindow(9, 100s)}},
      {"l", {*Quota::SlidingLog(9, 10s), *Quota::SlidingLog(9, 100s)}},
      {"c", {*Quota::SlidingCounter(9, 10s, 5), *Quota::SlidingCounter(9, 100s, 5)}},
      {"n", {*Quota::Concurrency(9, 10s), *Quota::Concurrency(9, 100s)}}};
  for (const auto& [letter, quotas] : changes) {
    const std::string name = std::string("weir:k") + letter;
    for (const std::size_t which : {0U, 0U, 1U, 1U}) {
      ASSERT_TRUE(client.One(Op::kCharge, {"k", 1, &quotas[which]}).applied);
      expect_lasting(quotas[which], name);
    }
    client.One(Op::kRefund, {"k", 1, &quotas[1]});
    expect_lasting(quotas[1], name);
    if (*letter == 'l' || *letter == 'n') expect_lasting(quotas[1], name + "e");
  }
}

TEST(RedisRecovery, AFreshKeyExpiresWithinAStepOfItsEnd) {
  test::RedisServer server;
  Client client({.url = server.url()});
  const Quota fresh[] = {*Quota::TokenBucket(5, 1, 50s), *Quota::FixedWindow(5, 700s),
                         *Quota::AnchoredWindow(5, 700s), *Quota::SlidingCounter(5, 700s, 7)};
  // For the first charge there is no server time to count from, for the others there is.
  for (int i = 0; i < 2; ++i) {
    for (const Quota& quota : fresh) {
      const std::string key = quota.ToString() + std::to_string(i);
      const Client::Answer answer = client.One(Op::kCharge, {key, 1, &quota});
      ASSERT_TRUE(answer.applied) << key;
      const char last = algorithm::Of(quota).letter;
      const std::chrono::milliseconds left(
          std::stoll(server.Command({"PTTL", "weir:" + key + last})));
      const Client::Answer later = client.One(Op::kPeek, {key, 0, &quota});
      EXPECT_GE(left + 1ms, later.decision.reset_after) << key;
      EXPECT_LE(left, answer.decision.reset_after + 17'182ms) << key;
    }
  }
}

TEST(RedisRecovery, AClockFarFromOursDecidesAllTheSame) {
  // The first call uses this machine's time as its reference. The server's may differ, so a
  // scripted server answers like one whose clock is in 1971.
  std::atomic<int> calls = 0;
  test::TcpServer server([&calls](test::TcpConnection& peer) {
    peer.ReadThrough("EVALSHA");
    ++calls;
    peer.Send("*3\r\n$5\r\nstale\r\n$8\r\n31536000\r\n$1\r\n7\r\n");
    peer.ReadThrough("EVALSHA");
    ++calls;
    // now = 31,536,000 s in ns = 0x0070'09D3'2DA3'0000; the key did not exist.
    peer.Send(std::string("*2\r\n$8\r\n\x00\x00\xA3\x2D\xD3\x09\x70\x00\r\n$0\r\n\r\n", 25));
    peer.ReadAll();
  });
  Client client(Quick("redis://127.0.0.1:" + std::to_string(server.port())));
  const Quota quota = *Quota::FixedWindow(3, kMaxWindow);
  const Client::Answer answer = client.One(Op::kCharge, {"k", 1, &quota});
  ASSERT_TRUE(answer.status.ok()) << answer.status.error().message;
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(answer.decision.remaining, 2);
  // The window began at the epoch: 100 years less one of 365 days.
  EXPECT_EQ(answer.decision.reset_after, kMaxWindow - 365 * 24h);
}

TEST(RedisRecovery, WhatIsPendingIsToldWhenTheStoreGoes) {
  test::RedisServer server;
  const Quota quota = *Quota::FixedWindow(3, kMaxWindow);
  const Charge charge{"k", 1, &quota};
  Decision decision;
  Application application;
  application.charges = std::span(&charge, 1);
  application.decisions = std::span(&decision, 1);
  bool done = false;
  {
    Client client({.url = server.url()});
    client.store().Apply(std::span(&application, 1), [&done] { done = true; });
  }
  EXPECT_TRUE(done);
  EXPECT_FALSE(application.status.ok());
}

}  // namespace
}  // namespace weir::store::redis
