#include "notify/smtp_provider.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "notify/retry.h"
#include "support/tcp_server.h"

// Mail servers that refuse, each at another point of the protocol. A real server is in
// tests/integration/notify/smtp_test.cc.

namespace weir::notify {
namespace {

using testing::HasSubstr;

const Event kEvent{.id = "id-1", .user_id = "ann", .message = "hi", .recipient = "ann@example.com"};

struct Answers {
  std::string greeting = "220 here";
  std::string hello = "250 hello";
  std::string from = "250 ok";
  std::string recipient = "250 ok";
  std::string content = "250 taken";
};

Status DeliverTo(const Answers& answers) {
  const test::TcpServer server([&](test::TcpConnection& connection) {
    const auto say = [&](const std::string& line) { connection.Send(line + "\r\n"); };
    say(answers.greeting);
    for (;;) {
      const std::string line = connection.ReadThrough("\r\n");
      if (line.starts_with("EHLO") || line.starts_with("HELO")) {
        say(answers.hello);
      } else if (line.starts_with("MAIL")) {
        say(answers.from);
      } else if (line.starts_with("RCPT")) {
        say(answers.recipient);
      } else if (line.starts_with("DATA")) {
        say("354 go on");
        connection.ReadThrough("\r\n.\r\n");
        say(answers.content);
      } else {
        say("221 bye");
        return;
      }
    }
  });
  SmtpOptions options =
      *ParseSmtpUrl("smtp://127.0.0.1:" + std::to_string(server.port()) + "/?from=w@example.com");
  options.tls = SmtpOptions::Tls::kOff;
  return (*SmtpProvider::Open(options))->Deliver(kEvent);
}

TEST(SmtpProvider, AMailThatIsTakenIsDelivered) { EXPECT_TRUE(DeliverTo({})); }

TEST(SmtpProvider, AMailboxOrATextThatIsRefusedWillBeRefusedAgain) {
  for (const Answers& answers :
       {Answers{.recipient = "550 no such mailbox"}, Answers{.content = "554 we do not like it"}}) {
    const Status delivered = DeliverTo(answers);
    ASSERT_FALSE(delivered);
    EXPECT_FALSE(MayHelpToRetry(delivered.error())) << delivered.error().message;
    EXPECT_THAT(delivered.error().message, HasSubstr("the mail server answered 55"));
  }
}

// The reason is on our side or the server's: the next mail would get the same answer.
TEST(SmtpProvider, AServerThatServesNobodyIsDown) {
  for (const Answers& answers :
       {Answers{.greeting = "554 no mail service here"}, Answers{.hello = "550 not for you"},
        Answers{.from = "530 authentication required"}, Answers{.from = "421 closing"}}) {
    const Status delivered = DeliverTo(answers);
    ASSERT_FALSE(delivered);
    EXPECT_TRUE(MayHelpToRetry(delivered.error())) << delivered.error().message;
  }
}

}  // namespace
}  // namespace weir::notify
