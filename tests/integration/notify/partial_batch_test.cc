// A batch of which Kafka accepts only a part: each user is charged for what was confirmed and for
// nothing else, and all others get 503.

#include <map>
#include <string>

#include "integration/notify/fixture.h"
#include "support/wait.h"

namespace weir::notify::test {
namespace {

using ::testing::AnyOf;
using ::testing::SizeIs;

const std::string kLarge(12'000, 'x');

/// How often each status occurred, by the size of the message.
struct Sent {
  std::map<int, int> small;
  std::map<int, int> large;
};

class PartialBatch : public testing::Test {
 protected:
  struct Flight {
    bool large;
    std::future<Response> answer;
  };

  static Sent Collect(std::vector<Flight>& flights) {
    Sent sent;
    for (Flight& flight : flights) {
      ++(flight.large ? sent.large : sent.small)[Gateways::Wait(std::move(flight.answer)).status];
    }
    return sent;
  }
  static std::string Writer(Servers& servers, const std::string& user) {
    return servers.Ask("SELECT xmin FROM rate_limit_store WHERE user_id = '" + user + "'");
  }
};

TEST_F(PartialBatch, EachSendOfOneTransactionIsCountedOrAnswered503) {
  Servers servers({"message.max.bytes=10000"});
  Gateways gateway(servers, Path::kPostgres, {.connections = 1});
  for (const char* user : {"gate", "small", "large", "both"}) gateway.Configure(user, 1000, 10);
  // The broker takes a moment before it accepts a producer.
  ASSERT_TRUE(weir::test::WaitUntil([&] { return gateway.Send("gate").status == 200; }));
  // While the only connection waits for the gate's row, all others queue up together.
  std::thread holder = servers.HoldRow("gate", "3");
  std::future<Response> gate = gateway.StartSend("gate");
  EXPECT_TRUE(weir::test::WaitUntil([&] {
    return servers.Ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") ==
           "1";
  }));
  std::map<std::string, std::vector<Flight>> flights;
  for (int i = 0; i < 20; ++i) {
    const bool odd = i % 2 == 1;
    flights["small"].push_back({false, gateway.StartSend("small")});
    flights["large"].push_back({true, gateway.StartSend("large", kLarge)});
    flights["both"].push_back({odd, gateway.StartSend("both", odd ? kLarge : "hello")});
  }
  holder.join();
  // On a slow machine it waited too long for its row; the others are still batched.
  EXPECT_THAT(Gateways::Wait(std::move(gate)).status, AnyOf(200, 503));
  std::map<std::string, Sent> all;
  for (auto& [user, of_user] : flights) all[user] = Collect(of_user);
  // The users' events are on three partitions. If a user has both kinds, the small ones that were
  // sent to the broker in one piece with a large one were refused with it.
  EXPECT_EQ(all["small"].small, (std::map<int, int>{{200, 20}}));
  EXPECT_EQ(all["large"].large, (std::map<int, int>{{503, 20}}));
  EXPECT_EQ(all["both"].large, (std::map<int, int>{{503, 10}}));
  EXPECT_EQ(all["both"].small[200] + all["both"].small[503], 10);
  for (auto& [user, sent] : all) {
    EXPECT_EQ(servers.CountOf(user), std::to_string(sent.small[200])) << user;
    EXPECT_THAT(servers.EventsOf(user), SizeIs(sent.small[200])) << user;
  }
  if (all["both"].small[200] > 0) {
    EXPECT_EQ(Writer(servers, "small"), Writer(servers, "both")) << "not one transaction";
  }
  // The places are still available for events that fit.
  EXPECT_EQ(gateway.Send("large").status, 200);
  EXPECT_EQ(servers.CountOf("large"), "1");
}

}  // namespace
}  // namespace weir::notify::test
