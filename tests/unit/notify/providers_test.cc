#include "notify/providers.h"

#include <gmock/gmock.h>

#include "notify/smtp_provider.h"

namespace weir::notify {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Problem(std::vector<std::string> routes) {
  const auto opened = OpenProviders({.routes = std::move(routes)});
  return opened.ok() ? std::string() : opened.error().message;
}

TEST(Providers, AChannelWithoutOneCannotBeDeliveredTo) {
  auto provider = OpenProviders({.routes = {"email=smtp://127.0.0.1:1/?from=a@b.c"}});
  ASSERT_TRUE(provider.ok()) << provider.error().message;
  const Status status = (*provider)->Deliver({.id = "1", .user_id = "u", .message = "m"});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  EXPECT_THAT(status.error().message, HasSubstr("sms"));
}

TEST(Providers, SayWhichRouteIsWrongAndNotItsPassword) {
  EXPECT_EQ(Problem({"console:", "email=smtps://u:p@h/?from=a@b.c", "push=https://x/y?a=b"}), "");
  EXPECT_THAT(Problem({"ftp://x"}), AllOf(HasSubstr("all channels"), HasSubstr("console:")));
  EXPECT_THAT(Problem({"console:", "console:"}), HasSubstr("twice"));
  EXPECT_THAT(Problem({"EMAIL=console:"}), HasSubstr("channel"));
  EXPECT_THAT(Problem({"email=smtp://u:s3cret@h/"}),
              AllOf(HasSubstr("from is missing"), Not(HasSubstr("s3cret"))));
}

TEST(Providers, OnlyTheConsoleNeedsNoWorkers) {
  EXPECT_TRUE(OnlyConsole({}));
  EXPECT_TRUE(OnlyConsole({.routes = {"sms=console:"}}));
  EXPECT_FALSE(OnlyConsole({.routes = {"console:", "email=smtp://h/?from=a@b.c"}}));
}

TEST(SmtpUrl, HasALoginAndParameters) {
  const auto options =
      ParseSmtpUrl("smtp://me%40x:p%3Aw@mail.example:2525/?from=weir@example.com&subject=Hi%20you");
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->server, "smtp://mail.example:2525");
  EXPECT_EQ(options->user, "me@x");
  EXPECT_EQ(options->password, "p:w");
  EXPECT_EQ(options->subject, "Hi you");
  EXPECT_EQ(options->tls, SmtpOptions::Tls::kRequired) << "no password in the clear";
  EXPECT_EQ(ParseSmtpUrl("smtp://h/?from=a@b.c&tls=off")->tls, SmtpOptions::Tls::kOff);
  for (const char* wrong :
       {"smtp://", "smtp://h", "smtp://h/?from=nobody", "smtp://h/?from=a@b&x=1",
        "http://h/?from=a@b", "smtp://h/?from=a@b%0d%0aX", "smtp://h/?tls=maybe",
        "smtp://h/?from=a@b.c&tls_ca=/no/such.pem"}) {
    EXPECT_FALSE(ParseSmtpUrl(wrong).ok()) << wrong;
  }
}

TEST(Mail, KeepsItsLinesShortAndItsHeaderItsOwn) {
  const Event event{.id = "6f1c",
                    .user_id = "42",
                    .message = std::string(300, 'x') + "\r\n.\r\nDATA",
                    .created_at = 1'767'323'045'000'000,
                    .channel = "email",
                    .recipient = "ann@example.com"};
  const std::string mail = MailOf(event, {.from = "weir@example.com", .subject = "a\r\nBcc: x@y"});
  EXPECT_THAT(mail, HasSubstr("To: <ann@example.com>\r\n"));
  EXPECT_THAT(mail, HasSubstr("Message-ID: <6f1c@example.com>\r\n"));
  EXPECT_THAT(mail, HasSubstr("Date: Fri, 02 Jan 2026 03:04:05 +0000\r\n"));
  EXPECT_THAT(mail, Not(HasSubstr("Bcc:")));
  std::size_t start = 0;
  for (std::size_t end; (end = mail.find("\r\n", start)) != std::string::npos; start = end + 2) {
    EXPECT_LE(end - start, 78U);
  }
}

TEST(Smtp, ARecipientThatIsNoAddressIsNeverTried) {
  auto provider = SmtpProvider::Open(*ParseSmtpUrl("smtp://127.0.0.1:1/?from=a@b.c"));
  ASSERT_TRUE(provider.ok());
  for (const char* wrong : {"42", "@x", "a@", "a b@c", "a@b>\r\nRCPT TO:<x@y", "a@b,c@d"}) {
    const Status status = (*provider)->Deliver({.id = "1", .user_id = wrong, .message = "m"});
    ASSERT_FALSE(status.ok()) << wrong;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace weir::notify
