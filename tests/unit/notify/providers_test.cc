#include "notify/providers.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "notify/smtp_provider.h"

namespace weir::notify {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Problem(std::vector<std::string> routes) {
  const auto opened = OpenProviders({.routes = std::move(routes)});
  return opened.ok() ? std::string() : opened.error().message;
}

/// Standard output goes to a pipe as long as this lives. What is read does not block.
class OutputPipe {
 public:
  OutputPipe() {
    std::fflush(stdout);
    EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK), 0);
    dup2(ends_[1], STDOUT_FILENO);
  }
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;
  ~OutputPipe() {
    dup2(before_, STDOUT_FILENO);
    for (const int fd : {before_, ends_[0], ends_[1]}) close(fd);
  }

  std::string Read() const {
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t got; (got = read(ends_[0], part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  const int before_ = dup(STDOUT_FILENO);
  std::array<int, 2> ends_{};
};

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

// There is one console: a line of one channel that was cut must not become part of another's.
TEST(Providers, TheChannelsOnTheConsoleDoNotMixTheirLines) {
  auto provider =
      OpenProviders({.routes = {"console:", "email=console:"}, .timeout = milliseconds(50)});
  ASSERT_TRUE(provider.ok());
  std::string cut;
  std::string next;
  Status late;
  Status soon;
  {
    const OutputPipe console;
    // More than a pipe holds.
    late = (*provider)->Deliver({.id = "1", .user_id = "u", .message = std::string(200'000, 'x')});
    cut = console.Read();
    soon = (*provider)->Deliver({.id = "2", .user_id = "u", .message = "m", .channel = "email"});
    next = console.Read();
  }
  EXPECT_FALSE(late.ok());
  EXPECT_THAT(cut, Not(HasSubstr("\n")));
  EXPECT_TRUE(soon.ok());
  EXPECT_EQ(next, "\nSMS SENT userId=\"u\" message=\"m\" eventId=2\n");
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
