// Keys with contents that Weir did not write: a check of one gets an error, and the others of the
// same call are not affected.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "integration/store/redis/client.h"
#include "support/redis_server.h"

namespace weir::store::redis {
namespace {

using namespace std::chrono_literals;

struct Damage {
  Quota quota;
  char letter;        // the last letter of its keys' names
  std::string bytes;  // the state
};

// Impossible lengths; zero widths, unbounded counts and impossible counts of entries.
std::vector<Damage> Damages() {
  const Quota bucket = *Quota::TokenBucket(5, 1, 1h);
  const Quota window = *Quota::FixedWindow(5, 24h);
  const Quota log = *Quota::SlidingLog(5, 1h);
  const Quota counter = *Quota::SlidingCounter(5, 1h, 4);
  const Quota leases = *Quota::Concurrency(5, 1h);
  std::vector<Damage> all;
  for (const std::string& bytes :
       {std::string("x"), std::string(11, '\x7f'), std::string(9000, '\xff'), std::string()}) {
    all.push_back({bucket, 't', bytes});
    all.push_back({window, 'f', bytes});
    all.push_back({log, 'l', bytes});
    all.push_back({counter, 'c', bytes});
    all.push_back({leases, 'n', bytes});
  }
  all.push_back({counter, 'c', std::string(20, '\0')});
  all.push_back(
      {counter, 'c',
       std::string("\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x04\0", 18) + std::string(900, '\xff')});
  all.push_back({log, 'l', std::string(33, '\x7f')});
  all.push_back({leases, 'n', std::string(33, '\x7f')});
  return all;
}

class RedisDamage : public ::testing::Test {
 protected:
  std::string Name(const std::string& key, char letter) { return "weir:" + key + letter; }

  test::RedisServer server_;
  Client client_{{.url = server_.url()}};
  const Quota hundred_ = *Quota::FixedWindow(100, 24h);
};

TEST_F(RedisDamage, OneKeyFailsAndTheOthersOfTheCallAreExact) {
  std::int64_t used = 0;
  for (const Damage& damage : Damages()) {
    SCOPED_TRACE(std::string(1, damage.letter) + " of " + std::to_string(damage.bytes.size()));
    for (const Op op : {Op::kCharge, Op::kPeek, Op::kRefund, Op::kRelease}) {
      server_.Command({"SET", Name("bad", damage.letter), damage.bytes});
      const Charge good{"good", 1, &hundred_};
      const Charge bad{"bad", 1, &damage.quota};
      const std::vector<Charge> both = {good, bad};
      std::vector<Decision> decisions(4);
      std::vector<Application> batch(3);
      batch[0].charges = {&good, 1};
      batch[1].op = op;
      batch[1].lease = 1;
      batch[1].charges = {&bad, 1};
      batch[2].charges = {&good, 1};
      for (std::size_t i = 0; i < 3; ++i) batch[i].decisions = {&decisions[i], 1};
      client_.Apply(batch);
      ASSERT_TRUE(batch[0].status.ok()) << batch[0].status.error().message;
      ASSERT_TRUE(batch[2].status.ok()) << batch[2].status.error().message;
      used += 2;
      EXPECT_EQ(decisions[2].remaining, 100 - used);
      ASSERT_FALSE(batch[1].status.ok());
      EXPECT_EQ(batch[1].status.error().code, Code::kInternal);
      EXPECT_FALSE(batch[1].applied);
      const Client::Answer alone = client_.One(op, bad, 1);
      ASSERT_FALSE(alone.status.ok());
      EXPECT_EQ(alone.status.error().code, Code::kInternal);
      if (used >= 90) {
        client_.One(Op::kReset, good);
        used = 0;
      }
    }
    ASSERT_TRUE(client_.One(Op::kReset, {"bad", 0, &damage.quota}).status.ok());
    EXPECT_EQ(client_.One(Op::kCharge, {"bad", 1, &damage.quota}).decision.remaining, 4);
    client_.One(Op::kReset, {"bad", 0, &damage.quota});
  }
}

TEST_F(RedisDamage, WhatIsChargedTogetherWithItIsNotCharged) {
  const Quota log = *Quota::SlidingLog(5, 1h);
  server_.Command({"SET", Name("bad", 'l'), "x"});
  const std::vector<Charge> both = {{"good", 1, &hundred_}, {"bad", 1, &log}};
  std::vector<Decision> decisions(2);
  Application application;
  application.charges = both;
  application.decisions = decisions;
  client_.Apply({&application, 1});
  ASSERT_FALSE(application.status.ok());
  EXPECT_EQ(client_.One(Op::kPeek, {"good", 0, &hundred_}).decision.remaining, 100);
}

// The list of a log's entries is a separate key.
TEST_F(RedisDamage, EntriesOfALogThatAreNone) {
  const Quota log = *Quota::SlidingLog(5, 1h);
  for (const bool other_type : {true, false}) {
    ASSERT_TRUE(client_.One(Op::kCharge, {"bad", 2, &log}).status.ok());
    ASSERT_TRUE(client_.One(Op::kCharge, {"bad", 1, &log}).status.ok());
    const std::string list = Name("bad", 'l') + "e";
    if (other_type) {
      server_.Command({"SET", list, "text"});
    } else {
      server_.Command({"LSET", list, "0", "x"});
    }
    const Charge good{"good", 1, &hundred_};
    const std::vector<Charge> both = {good, {"bad", 1, &log}};
    const Charge refused{"bad", 4, &log};  // reads the entries
    std::vector<Decision> decisions(4);
    std::vector<Application> batch(3);
    batch[0].charges = {&refused, 1};
    batch[0].decisions = std::span(decisions).subspan(0, 1);
    batch[1].charges = both;
    batch[1].decisions = std::span(decisions).subspan(1, 2);
    batch[2].charges = {&good, 1};
    batch[2].decisions = std::span(decisions).subspan(3, 1);
    client_.Apply(batch);
    EXPECT_FALSE(batch[0].status.ok());
    ASSERT_TRUE(batch[2].status.ok()) << batch[2].status.error().message;
    if (other_type) {
      EXPECT_FALSE(batch[1].status.ok());
      EXPECT_EQ(decisions[3].remaining, 99);
    }
    client_.One(Op::kReset, {"bad", 0, &log});
    client_.One(Op::kReset, good);
  }
}

}  // namespace
}  // namespace weir::store::redis
