// Mails to a real SMTP server: what arrives, and which refusals are worth retrying.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "notify/providers.h"
#include "notify/retry.h"
#include "support/certificates.h"
#include "support/child_process.h"
#include "support/paths.h"
#include "support/ports.h"

namespace weir::notify {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;

class SmtpServer : public testing::Test {
 protected:
  SmtpServer() {
    Start();
    auto opened = OpenProviders({.routes = {"email=smtp://127.0.0.1:" + std::to_string(port_) +
                                            "/?from=weir@example.com&subject=Gr%C3%BC%C3%9Fe"}});
    if (!opened.ok()) throw std::runtime_error(opened.error().message);
    provider_ = std::move(*opened);
  }

  void Start(const std::vector<std::string>& more = {}) {
    // The system's Python, which has the packages of packages.txt.
    std::vector<std::string> words = {"/usr/bin/python3",
                                      test::SourcePath("tests/support/smtp/server.py"),
                                      std::to_string(port_)};
    words.insert(words.end(), more.begin(), more.end());
    server_.emplace(words);
    if (!server_->WaitForLine("ready")) throw std::runtime_error(server_->error_output());
  }

  static Event Mail(const std::string& id, const std::string& to, const std::string& text) {
    return {.id = id, .user_id = "42", .message = text, .channel = "email", .recipient = to};
  }

  const std::uint16_t port_ = test::FreePort();
  std::optional<test::ChildProcess> server_;
  std::unique_ptr<Provider> provider_;
};

TEST_F(SmtpServer, TakesAMailWithItsTextAndItsId) {
  const Status sent = provider_->Deliver(Mail("id-1", "ann@example.com", "Grüße\n.\nQUIT\n"));
  ASSERT_TRUE(sent.ok()) << sent.error().message;
  EXPECT_THAT(
      server_->WaitForLine("id-1"),
      Optional(AllOf(
          HasSubstr(R"("from": "weir@example.com")"), HasSubstr(R"("to": ["ann@example.com"])"),
          HasSubstr(R"("id": "<id-1@example.com>")"), HasSubstr(R"("subject": "Gr\u00fc\u00dfe")"),
          HasSubstr(R"("text": "Gr\u00fc\u00dfe\n.\nQUIT\n")"))));
}

TEST_F(SmtpServer, ManyAtOnceAllArrive) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 10; ++i) {
        const std::string id = "many-" + std::to_string(t) + "-" + std::to_string(i) + "-";
        EXPECT_TRUE(provider_->Deliver(Mail(id, "bob@example.com", "m")).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) {
    EXPECT_TRUE(server_->WaitForLine("many-" + std::to_string(t) + "-9-"));
  }
}

TEST_F(SmtpServer, ATemporaryRefusalMayBeTriedAgainAndAPermanentOneNot) {
  const Status later = provider_->Deliver(Mail("id-2", "ann@later.test", "m"));
  ASSERT_FALSE(later.ok());
  EXPECT_TRUE(MayHelpToRetry(later.error())) << later.error().message;
  EXPECT_THAT(later.error().message, HasSubstr("451"));
  const Status gone = provider_->Deliver(Mail("id-3", "ann@gone.test", "m"));
  ASSERT_FALSE(gone.ok());
  EXPECT_FALSE(MayHelpToRetry(gone.error())) << gone.error().message;
  EXPECT_THAT(gone.error().message, HasSubstr("550"));
  // The connection is reused for the next one.
  EXPECT_TRUE(provider_->Deliver(Mail("id-4", "ann@example.com", "m")).ok());
}

TEST_F(SmtpServer, AServerThatIsAwayMayBeTriedAgain) {
  server_->Kill();
  const Status status = provider_->Deliver(Mail("id-5", "ann@example.com", "m"));
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(MayHelpToRetry(status.error())) << status.error().message;
}

// Like the servers of mail providers: nothing before STARTTLS, no mail without a login.
TEST_F(SmtpServer, ALoginOverTlsIsVerifiedOnBothSides) {
  test::Certificates certificates;
  const auto pair = certificates.Issue("mail", "mail");
  server_.reset();
  Start({pair.certificate.string(), pair.key.string()});
  const auto deliver = [&](const std::string& login, const std::string& more, const char* id) {
    auto opened =
        OpenProviders({.routes = {"smtp://" + login + "127.0.0.1:" + std::to_string(port_) +
                                  "/?from=weir@example.com" + more}});
    if (!opened.ok()) throw std::runtime_error(opened.error().message);
    return (*opened)->Deliver(Mail(id, "ann@example.com", "m"));
  };
  const std::string trusted = "&tls_ca=" + certificates.authority().string();
  const Status sent = deliver("weir:sesame@", trusted, "id-7");
  ASSERT_TRUE(sent.ok()) << sent.error().message;
  EXPECT_THAT(server_->WaitForLine("id-7"), Optional(HasSubstr("\"tls\": true")));

  const Status wrong = deliver("weir:guess@", trusted, "id-8");
  ASSERT_FALSE(wrong.ok());
  EXPECT_TRUE(MayHelpToRetry(wrong.error())) << "the password may be set right";
  EXPECT_THAT(wrong.error().message, Not(HasSubstr("guess")));
  const Status unknown = deliver("weir:sesame@", "", "id-8");
  ASSERT_FALSE(unknown.ok()) << "the system trusts nobody who vouches for it";
  EXPECT_TRUE(MayHelpToRetry(unknown.error())) << unknown.error().message;
  ASSERT_FALSE(deliver("", trusted, "id-8").ok()) << "it asks for a login";
  EXPECT_THAT(server_->output(), Not(HasSubstr("id-8")));
}

TEST_F(SmtpServer, APasswordIsNotSentInTheClear) {
  auto opened = OpenProviders({.routes = {"smtp://user:secret@127.0.0.1:" + std::to_string(port_) +
                                          "/?from=weir@example.com"}});
  ASSERT_TRUE(opened.ok());
  const Status status = (*opened)->Deliver(Mail("id-6", "ann@example.com", "m"));
  ASSERT_FALSE(status.ok()) << "this server has no TLS";
  EXPECT_THAT(server_->output(), Not(HasSubstr("id-6")));
}

}  // namespace
}  // namespace weir::notify
