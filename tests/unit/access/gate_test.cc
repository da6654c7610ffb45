#include "access/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "telemetry/log.h"

namespace weir::access {
namespace {

using Verdict = Admission::Verdict;
using std::chrono::seconds;

constexpr std::string_view kAdmin = "the-key-of-the-admins";
constexpr std::string_view kPayments = "the-key-of-payments";

config::Config::Access Keys() {
  config::Config::Access access;
  access.keys.push_back({"payments", config::Sha256(kPayments), *ParseRoles("slots+send")});
  access.subjects.push_back({"ledger", *ParseRoles("read")});
  return access;
}

class GateTest : public ::testing::Test {
 protected:
  Verdict Ask(std::string_view key, Operation operation, std::string_view address = "192.0.2.1") {
    return gate_.Admit({.address = address, .key = key, .door = "test"}, operation).verdict;
  }

  ManualClock clock_{1'000'000'000'000};
  Gate gate_{Keys(),
             {config::Sha256(kAdmin)},
             [](std::string_view token) -> std::optional<Bearer> {
               if (token != "eyJgood") return std::nullopt;
               return Bearer{"alice", *ParseRoles("operate")};
             },
             clock_};
};

TEST_F(GateTest, WithoutKeysNothingNeedsOne) {
  Gate gate({}, {});
  EXPECT_FALSE(gate.has_keys());
  EXPECT_TRUE(gate.Admit({.address = "192.0.2.1"}, Operation::kSend).admitted());
}

TEST_F(GateTest, OnlyChecksAreOpenUnlessToldOtherwise) {
  for (const Operation open : {Operation::kPublic, Operation::kCheck}) {
    EXPECT_EQ(Ask("", open), Verdict::kAdmitted);
    // An open operation ignores keys, so a client's own key does not count as wrong.
    EXPECT_EQ(Ask("a key of the client's own", open), Verdict::kAdmitted);
  }
  for (const Operation closed :
       {Operation::kGiveBack, Operation::kSlots, Operation::kSlotsChange, Operation::kSend,
        Operation::kRead, Operation::kOperate, Operation::kAdmin}) {
    EXPECT_EQ(Ask("", closed), Verdict::kKeyMissing);
    EXPECT_EQ(Ask("wrong", closed), Verdict::kKeyWrong);
    EXPECT_EQ(Ask(kAdmin, closed), Verdict::kAdmitted);
  }
}

TEST_F(GateTest, ARoleIsForItsOperationsAlone) {
  EXPECT_EQ(Ask(kPayments, Operation::kSend), Verdict::kAdmitted);
  EXPECT_EQ(Ask(kPayments, Operation::kSlotsChange), Verdict::kAdmitted);
  for (const Operation other :
       {Operation::kGiveBack, Operation::kRead, Operation::kOperate, Operation::kAdmin}) {
    EXPECT_EQ(Ask(kPayments, other), Verdict::kRoleMissing);
    EXPECT_THAT(Explain({.verdict = Verdict::kRoleMissing}, other),
                ::testing::HasSubstr("the role " + std::string(RoleNeeded(other)) + ","));
  }
  EXPECT_EQ(Ask("eyJgood", Operation::kRead), Verdict::kAdmitted);
  EXPECT_EQ(Ask("eyJgood", Operation::kOperate), Verdict::kAdmitted);
  EXPECT_EQ(Ask("eyJgood", Operation::kAdmin), Verdict::kRoleMissing);
  EXPECT_EQ(Ask("eyJbad", Operation::kRead), Verdict::kKeyWrong);
}

TEST_F(GateTest, ACertificateHasTheRolesOfItsSubject) {
  EXPECT_TRUE(gate_.Admit({.subject = "ledger"}, Operation::kRead).admitted());
  EXPECT_EQ(gate_.Admit({.subject = "ledger"}, Operation::kAdmin).verdict, Verdict::kRoleMissing);
  EXPECT_EQ(gate_.Admit({.subject = "other"}, Operation::kRead).verdict, Verdict::kKeyMissing);
}

TEST_F(GateTest, TellsWhoItWas) {
  EXPECT_EQ(gate_.Admit({.key = kPayments}, Operation::kSend).name, "payments");
  EXPECT_EQ(gate_.Admit({.key = "eyJgood"}, Operation::kRead).name, "alice");
  EXPECT_EQ(gate_.Admit({.key = "eyJgood"}, Operation::kRead).Holder(), "token alice");
  EXPECT_EQ(gate_.Admit({.subject = "ledger"}, Operation::kRead).Holder(), "certificate ledger");
  EXPECT_EQ(gate_.Admit({.key = kPayments}, Operation::kSend).Holder(), "key payments");
  EXPECT_EQ(Gate({}, {config::Sha256("abc")}).Admit({.key = "abc"}, Operation::kSend).Holder(),
            "key ba7816bf");  // the digest of FIPS 180-2, appendix B.1
  EXPECT_EQ(gate_.Admit({.key = kPayments}, Operation::kCheck).Holder(), "");  // not checked
}

TEST_F(GateTest, AnAddressWithManyWrongKeysIsNotHeardForAWhile) {
  for (int i = 0; i < Gate::kWrongKeys; ++i) {
    EXPECT_EQ(Ask("guess " + std::to_string(i), Operation::kRead), Verdict::kKeyWrong) << i;
  }
  const Admission slow = gate_.Admit({.address = "192.0.2.1", .key = "guess"}, Operation::kRead);
  EXPECT_EQ(slow.verdict, Verdict::kSlowedDown);
  EXPECT_EQ(slow.retry_after, Gate::kWrongKeyEvery);
  EXPECT_EQ(Explain(slow, Operation::kRead),
            "too many wrong keys from this address; try again in 6 s");
  // Not even the right one is accepted, or guessing would go on. Other addresses are served.
  EXPECT_EQ(Ask(kAdmin, Operation::kRead), Verdict::kSlowedDown);
  EXPECT_EQ(Ask(kAdmin, Operation::kRead, "192.0.2.2"), Verdict::kAdmitted);
  EXPECT_EQ(Ask("", Operation::kCheck), Verdict::kAdmitted);
  clock_.Advance(Gate::kWrongKeyEvery);
  EXPECT_EQ(Ask("guess", Operation::kRead), Verdict::kKeyWrong);
  EXPECT_EQ(Ask("guess", Operation::kRead), Verdict::kSlowedDown);
  EXPECT_EQ(gate_.wrong_keys(), std::uint64_t{Gate::kWrongKeys} + 1);
}

TEST_F(GateTest, TheLogSaysAtOnceThatAnAddressIsSlowedDown) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  telemetry::ConfigureLog({.format = telemetry::LogFormat::kJson, .fd = pipe[1]});
  for (int i = 0; i < 31; ++i) Ask("guess " + std::to_string(i), Operation::kRead);
  clock_.Advance(Gate::kWrongKeyEvery);
  EXPECT_EQ(Ask("guess", Operation::kRead), Verdict::kKeyWrong);
  telemetry::FlushLog();
  telemetry::ConfigureLog({});
  std::string text(65536, '\0');
  text.resize(
      static_cast<std::size_t>(std::max<ssize_t>(read(pipe[0], text.data(), text.size()), 0)));
  for (const int end : pipe) close(end);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_THAT(text, ::testing::HasSubstr(R"("wrong_keys":1,"slowed_down":"no"})"));
  EXPECT_THAT(text, ::testing::HasSubstr(R"("wrong_keys":10,"slowed_down":"yes"})"));
}

TEST_F(GateTest, WhoHasShownAKeyIsNotLockedOutByANeighbour) {
  EXPECT_EQ(Ask(kAdmin, Operation::kRead), Verdict::kAdmitted);
  for (int i = 0; i < 2 * Gate::kWrongKeys; ++i) (void)Ask("guess", Operation::kRead);
  EXPECT_EQ(Ask(kAdmin, Operation::kAdmin), Verdict::kAdmitted);
  EXPECT_EQ(Ask(kPayments, Operation::kSend), Verdict::kSlowedDown);
}

TEST_F(GateTest, EveryKeyThatAnAddressHasShownIsHeardAllTheSame) {
  EXPECT_EQ(Ask(kPayments, Operation::kSend), Verdict::kAdmitted);
  EXPECT_EQ(Ask(kAdmin, Operation::kRead), Verdict::kAdmitted);
  EXPECT_EQ(Ask("eyJgood", Operation::kRead), Verdict::kAdmitted);
  for (int i = 0; i < 2 * Gate::kWrongKeys; ++i) (void)Ask("guess", Operation::kRead);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Ask(kPayments, Operation::kSend), Verdict::kAdmitted);
    EXPECT_EQ(Ask(kAdmin, Operation::kRead), Verdict::kAdmitted);
    EXPECT_EQ(Ask("eyJgood", Operation::kRead), Verdict::kAdmitted);
  }
}

// Tokens are renewed every few minutes: whoever could keep them out would lock out everybody.
TEST_F(GateTest, ANewTokenIsHeardWhateverANeighbourGuesses) {
  for (int i = 0; i < 2 * Gate::kWrongKeys; ++i) (void)Ask("guess", Operation::kRead);
  EXPECT_EQ(Ask("eyJbad", Operation::kRead), Verdict::kSlowedDown);
  EXPECT_EQ(Ask("eyJgood", Operation::kRead), Verdict::kAdmitted);
}

TEST_F(GateTest, NotAnyNumberOfNewTokensIsVerifiedForWhoeverGuesses) {
  for (int i = 0; i < 2 * Gate::kWrongKeys; ++i) (void)Ask("guess", Operation::kRead);
  for (int i = 0; i < Gate::kNewTokens; ++i) (void)Ask("eyJbad", Operation::kRead);
  EXPECT_EQ(Ask("eyJgood", Operation::kRead), Verdict::kSlowedDown);
  clock_.Advance(Gate::kNewTokenEvery);
  EXPECT_EQ(Ask("eyJgood", Operation::kRead), Verdict::kAdmitted);
}

TEST_F(GateTest, AKeyThatLooksLikeATokenIsGuessedNoSooner) {
  constexpr std::string_view kKey = "eyJ-is-how-this-key-begins";
  Gate gate(
      Keys(), {config::Sha256(kKey)},
      [](std::string_view) -> std::optional<Bearer> { return std::nullopt; }, clock_);
  const auto ask = [&gate](std::string_view key) {
    return gate.Admit({.address = "192.0.2.1", .key = key}, Operation::kRead).verdict;
  };
  for (int i = 0; i < 2 * Gate::kWrongKeys; ++i) (void)ask("eyJguess");
  EXPECT_EQ(ask(kKey), Verdict::kSlowedDown);
}

TEST_F(GateTest, AKeyInUseIsRememberedHoweverManyTokensOthersShow) {
  Gate gate(
      Keys(), {},
      [](std::string_view) {
        return Bearer{"alice", kEveryRole};
      },
      clock_);
  const auto ask = [&gate](std::string_view address, const std::string& key) {
    return gate.Admit({.address = address, .key = key}, Operation::kSend).verdict;
  };
  const std::string key(kPayments);
  ASSERT_EQ(ask("192.0.2.1", key), Verdict::kAdmitted);
  for (int i = 0; i < 2 * Gate::kWrongKeys; ++i) (void)ask("192.0.2.1", "guess");
  for (int i = 0; i < 40'000; ++i) {
    ASSERT_EQ(ask("192.0.2.2", "eyJ" + std::to_string(i)), Verdict::kAdmitted);
    if (i % 1'000 == 0) {
      ASSERT_EQ(ask("192.0.2.1", key), Verdict::kAdmitted) << i;
    }
  }
}

TEST_F(GateTest, KeysOfTheRespDoorAreForItAloneAndCannotBeGuessedQuickly) {
  Gate gate({}, {}, {}, clock_, {config::Sha256("a-key-of-redis-clients")});
  EXPECT_FALSE(gate.has_keys());
  const auto knows = [&gate](std::string_view key, std::string_view door) {
    return gate.Knows({.address = "192.0.2.7", .key = key, .door = door}, Operation::kCheck);
  };
  EXPECT_FALSE(knows("a-key-of-redis-clients", "http"));
  EXPECT_TRUE(knows("a-key-of-redis-clients", "resp"));
  for (int i = 0; i < 2 * Gate::kWrongKeys; ++i) EXPECT_FALSE(knows("guess", "resp"));
  EXPECT_TRUE(knows("a-key-of-redis-clients", "resp"));  // used before
  const Caller other{.address = "192.0.2.8", .key = "guess", .door = "resp"};
  for (int i = 0; i < 2 * Gate::kWrongKeys; ++i) (void)gate.Knows(other, Operation::kCheck);
  EXPECT_FALSE(gate.Knows({.address = "192.0.2.8", .key = "a-key-of-redis-clients", .door = "resp"},
                          Operation::kCheck));
}

TEST_F(GateTest, ANetworkOfAddressesCountsAsOne) {
  for (int i = 0; i < Gate::kWrongKeys; ++i) {
    (void)Ask("guess", Operation::kRead, "2001:db8:0:1::" + std::to_string(i));
  }
  EXPECT_EQ(Ask("guess", Operation::kRead, "2001:db8:0:1::ffff"), Verdict::kSlowedDown);
  EXPECT_EQ(Ask("guess", Operation::kRead, "2001:db8:0:2::1"), Verdict::kKeyWrong);
}

TEST_F(GateTest, ManyThreadsMayAsk) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      const std::string address = "198.51.100." + std::to_string(t);
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(Ask(kPayments, Operation::kSend, address), Verdict::kAdmitted);
        (void)Ask("wrong", Operation::kSend, address);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Roles, EveryRouteHasOneAndTheUnknownNeedsTheMost) {
  EXPECT_EQ(OperationOf("POST", "/v1/check"), Operation::kCheck);
  EXPECT_EQ(OperationOf("POST", "/v1/refund"), Operation::kGiveBack);
  EXPECT_EQ(OperationOf("POST", "/v1/release"), Operation::kGiveBack);
  EXPECT_EQ(OperationOf("POST", "/api/v1/slots"), Operation::kSlots);
  EXPECT_EQ(OperationOf("POST", "/api/v1/slots/batch"), Operation::kSlots);
  EXPECT_EQ(OperationOf("GET", "/api/v1/slots/e1"), Operation::kSlotsChange);
  EXPECT_EQ(OperationOf("DELETE", "/api/v1/slots/e1"), Operation::kSlotsChange);
  EXPECT_EQ(OperationOf("POST", "/api/v1/slots/e1/reschedule"), Operation::kSlotsChange);
  EXPECT_EQ(OperationOf("POST", "/api/send"), Operation::kSend);
  EXPECT_EQ(OperationOf("POST", "/api/config"), Operation::kAdmin);
  EXPECT_EQ(OperationOf("GET", "/admin/policies"), Operation::kReadPolicies);
  EXPECT_EQ(OperationOf("HEAD", "/admin/policies/k/versions"), Operation::kReadPolicies);
  EXPECT_EQ(OperationOf("POST", "/admin/policies"), Operation::kPolicies);
  EXPECT_EQ(OperationOf("DELETE", "/admin/policies/k"), Operation::kPolicies);
  EXPECT_EQ(OperationOf("POST", "/admin/policies-of-others"), Operation::kAdmin);
  EXPECT_EQ(OperationOf("POST", "/admin/audit/1/undo"), Operation::kPolicies);
  EXPECT_EQ(OperationOf("POST", "/admin/audit/1/other"), Operation::kAdmin);
  EXPECT_EQ(OperationOf("GET", "/admin/status"), Operation::kRead);
  EXPECT_EQ(OperationOf("POST", "/admin/reset/k"), Operation::kOperate);
  EXPECT_EQ(OperationOf("GET", "/healthz"), Operation::kPublic);
  EXPECT_EQ(OperationOf("POST", "/anything"), Operation::kAdmin);
}

TEST(Roles, AreParsedAndImplyEachOther) {
  EXPECT_EQ(*ParseRoles("read"), static_cast<Roles>(Role::kRead));
  EXPECT_TRUE(MayDo(*ParseRoles("operate"), Operation::kRead));
  EXPECT_FALSE(MayDo(*ParseRoles("read"), Operation::kOperate));
  EXPECT_TRUE(MayDo(*ParseRoles("admin"), Operation::kSend));
  for (std::size_t i = 0; i < kOperations; ++i) {
    const auto operation = static_cast<Operation>(i);
    const bool own = operation == Operation::kPublic || operation == Operation::kPolicies ||
                     operation == Operation::kReadPolicies;
    EXPECT_EQ(MayDo(*ParseRoles("policies"), operation), own) << i;
    EXPECT_TRUE(MayDo(kEveryRole, operation)) << i;
  }
  EXPECT_TRUE(MayDo(*ParseRoles("read"), Operation::kReadPolicies));
  EXPECT_TRUE(MayDo(*ParseRoles("operate"), Operation::kReadPolicies));
  EXPECT_FALSE(MayDo(*ParseRoles("operate"), Operation::kPolicies));
  for (const char* wrong : {"", "root", "read+", "+read", "read,admin", "Read"}) {
    EXPECT_FALSE(ParseRoles(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace weir::access
