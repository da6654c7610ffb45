// `weir sender` as a program, on a real broker: what it prints, keeps and never repeats.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "notify/event.h"
#include "support/kafka_server.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::notify {
namespace {

using test::KafkaMessage;
using test::KafkaServer;
using test::TempDir;
using test::WeirProcess;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;

class SenderProgram : public testing::Test {
 protected:
  static void SetUpTestSuite() { broker_ = std::make_unique<KafkaServer>(); }
  static void TearDownTestSuite() { broker_.reset(); }

  /// Each test has a separate topic.
  std::vector<std::string> Args(std::vector<std::string> more = {}) const {
    std::vector<std::string> args = {"sender",  "--broker", broker_->url(), "--topic",  topic_,
                                     "--group", topic_,     "--data",       dir_.path()};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  void Put(const std::string& id, const std::string& user, const std::string& message) const {
    broker_->Write(topic_, user, EncodeEvent({.id = id, .user_id = user, .message = message}));
  }
  static std::vector<std::string> Sent(WeirProcess& sender) {
    std::vector<std::string> lines;
    std::istringstream all(sender.process().output());
    for (std::string line; std::getline(all, line);) {
      if (line.starts_with("SMS SENT")) lines.push_back(line);
    }
    return lines;
  }
  static bool WaitForSent(WeirProcess& sender, std::size_t count) {
    return test::WaitUntil([&] { return Sent(sender).size() >= count; });
  }
  std::vector<KafkaMessage> DeadLetters() const {
    std::vector<KafkaMessage> ours;
    for (KafkaMessage& message : broker_->Read("sms-outbound-dlq")) {
      if (message.headers.find("source-topic=" + topic_) != std::string::npos) {
        ours.push_back(std::move(message));
      }
    }
    return ours;
  }

  static std::unique_ptr<KafkaServer> broker_;
  const TempDir dir_;
  const std::string topic_ =
      std::string("topic-") + testing::UnitTest::GetInstance()->current_test_info()->name();
};
std::unique_ptr<KafkaServer> SenderProgram::broker_;

// Requirement 5, criteria 1 and 2.
TEST_F(SenderProgram, R5_2_PrintsSmsSentWithUserAndPayload) {
  WeirProcess sender(Args());
  Put("id-1", "42", "hello");
  ASSERT_TRUE(WaitForSent(sender, 1)) << sender.process().error_output();
  EXPECT_EQ(Sent(sender)[0], R"(SMS SENT userId="42" message="hello" eventId=id-1)");
  EXPECT_EQ(sender.process().Terminate(), 0);
}

// Requirement 5, criterion 3.
TEST_F(SenderProgram, R5_3_LogsMalformedMessagesKeepsThemAndGoesOn) {
  WeirProcess sender(Args());
  broker_->Write(topic_, "u", "this is no event");
  Put("id-1", "u", "after");
  ASSERT_TRUE(WaitForSent(sender, 1)) << sender.process().error_output();
  EXPECT_THAT(sender.process().WaitForError("malformed message skipped"),
              Optional(AllOf(HasSubstr("offset=0"), HasSubstr("bytes=16"), HasSubstr("JSON"))));
  EXPECT_THAT(sender.process().error_output(), Not(HasSubstr("this is no event")))
      << "what a message says is not for the log";
  EXPECT_EQ(sender.process().Terminate(), 0);
  const std::vector<KafkaMessage> dead = DeadLetters();
  ASSERT_EQ(dead.size(), 1);
  EXPECT_EQ(dead[0].payload, "this is no event");
  EXPECT_EQ(dead[0].key, "u");
  EXPECT_THAT(dead[0].headers, HasSubstr("reason="));
  EXPECT_THAT(dead[0].headers, HasSubstr("source-partition="));
  EXPECT_THAT(dead[0].headers, HasSubstr("source-offset=0"));
}

// With the added error description, it exceeds the maximum message size.
TEST_F(SenderProgram, AMalformedMessageAsLargeAsMayBeIsKeptInPartAndTheNextIsDelivered) {
  constexpr std::size_t kBytes = 999'950;
  WeirProcess sender(Args());
  broker_->Write(topic_, "u", std::string(kBytes, 'x'));
  ASSERT_TRUE(sender.process().WaitForError("malformed message skipped"));
  Put("id-1", "u", "after");
  ASSERT_TRUE(test::WaitUntil([&] { return Sent(sender).size() == 1; }))
      << sender.process().error_output();
  EXPECT_EQ(sender.process().Terminate(), 0);
  const std::vector<KafkaMessage> dead = DeadLetters();
  ASSERT_EQ(dead.size(), 1);
  EXPECT_THAT(dead[0].headers, HasSubstr("truncated-from=" + std::to_string(kBytes)));
  EXPECT_EQ(dead[0].payload, std::string(64 * 1024, 'x'));
}

TEST_F(SenderProgram, R5_1_ConsumesTheTopicAndARestartNeitherRepeatsNorForgets) {
  Put("id-1", "u", "one");
  {
    WeirProcess sender(Args());
    ASSERT_TRUE(WaitForSent(sender, 1)) << sender.process().error_output();
    EXPECT_EQ(sender.process().Terminate(), 0);
  }
  Put("id-1", "u", "one");  // again, as after a lost response
  Put("id-2", "u", "two");
  WeirProcess sender(Args());
  ASSERT_TRUE(WaitForSent(sender, 1)) << sender.process().error_output();
  EXPECT_EQ(sender.process().Terminate(), 0);
  const std::vector<std::string> sent = Sent(sender);
  ASSERT_EQ(sent.size(), 1);
  EXPECT_THAT(sent[0], HasSubstr("id-2"));
  EXPECT_TRUE(sender.process().WaitForError("duplicate event skipped"));
}

// At most what the first sender had printed is printed once more.
TEST_F(SenderProgram, KilledItLosesNothingAndRepeatsOnlyWhatItHadInHand) {
  std::set<std::string> wanted;
  for (int i = 0; i < 30; ++i) {
    const std::string id = "id-" + std::to_string(i);
    Put(id, "u" + std::to_string(i % 3), "m");
    wanted.insert(id);
  }
  std::multiset<std::string> seen;
  const auto take = [&seen](WeirProcess& sender) {
    for (const std::string& line : Sent(sender)) seen.insert(line.substr(line.rfind('=') + 1));
  };
  {
    WeirProcess sender(Args());
    ASSERT_TRUE(WaitForSent(sender, 1)) << sender.process().error_output();
    sender.process().Kill();
    take(sender);
  }
  const std::size_t first = seen.size();
  Put("id-last", "u0", "m");
  wanted.insert("id-last");
  WeirProcess sender(Args());
  EXPECT_TRUE(test::WaitUntil([&] {
    std::multiset<std::string> all = seen;
    for (const std::string& line : Sent(sender)) all.insert(line.substr(line.rfind('=') + 1));
    return std::set<std::string>(all.begin(), all.end()) == wanted;
  }));
  EXPECT_EQ(sender.process().Terminate(), 0);
  take(sender);
  EXPECT_LE(seen.size(), wanted.size() + first);
}

TEST_F(SenderProgram, AWebhookGetsEachEventAndItsRefusalIsADeadLetter) {
  std::mutex mutex;
  std::vector<std::string> bodies;
  int failures = 2;
  test::TcpServer receiver([&](test::TcpConnection& connection) {
    for (;;) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      const std::string body =
          connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
      const std::lock_guard lock(mutex);
      std::string status = "200 OK";
      if (body.find("refuse") != std::string::npos) {
        status = "422 No";
      } else if (failures > 0) {
        --failures;
        status = "503 Later";
      } else {
        bodies.push_back(body);
      }
      connection.Send("HTTP/1.1 " + status + "\r\nContent-Length: 0\r\n\r\n");
    }
  });
  Put("id-1", "u", "please refuse");
  Put("id-2", "u", "take");
  WeirProcess sender(
      Args({"--webhook", "http://127.0.0.1:" + std::to_string(receiver.port()) + "/sms"}));
  EXPECT_TRUE(test::WaitUntil([&] {
    const std::lock_guard lock(mutex);
    return bodies.size() == 1;
  })) << sender.process().error_output();
  EXPECT_EQ(sender.process().Terminate(), 0);
  EXPECT_THAT(bodies.at(0), HasSubstr("id-2"));
  const std::vector<KafkaMessage> dead = DeadLetters();
  ASSERT_EQ(dead.size(), 1);
  EXPECT_THAT(dead[0].headers, HasSubstr("422"));
}

// Neither a commit nor the goodbye to the group waits for its answer.
TEST_F(SenderProgram, EndsWhenToldToAlthoughTheBrokerStandsStill) {
  WeirProcess sender(Args());
  Put("id-1", "42", "hello");
  ASSERT_TRUE(WaitForSent(sender, 1)) << sender.process().error_output();
  broker_->Pause();
  sender.process().Signal(SIGTERM);
  const std::optional<int> code = sender.process().Wait(std::chrono::seconds(60));
  broker_->Resume();
  EXPECT_EQ(code, 0) << sender.process().error_output();
}

TEST_F(SenderProgram, SaysWhatIsWrongWithItsOptions) {
  WeirProcess sender({"sender", "--broker", "redis://x", "--data", dir_.path()});
  EXPECT_EQ(sender.process().Wait(), 2);
  EXPECT_THAT(sender.process().error_output(), HasSubstr("kafka://"));
}

}  // namespace
}  // namespace weir::notify
