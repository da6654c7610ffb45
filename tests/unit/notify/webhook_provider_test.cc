#include "notify/webhook_provider.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "notify/retry.h"
#include "support/ports.h"
#include "support/silent_names.h"
#include "support/stopwatch.h"
#include "support/tcp_server.h"

namespace weir::notify {
namespace {

using testing::HasSubstr;
using testing::Not;

const Event kEvent{.id = "id-1", .user_id = "ann", .message = "hi \"there\""};

/// Answers every request with one status and keeps the last head and body.
class Receiver {
 public:
  explicit Receiver(int status)
      : server_([this, status](test::TcpConnection& connection) {
          for (;;) {
            const std::string head = connection.ReadThrough("\r\n\r\n");
            const std::size_t at = head.find("Content-Length: ") + 16;
            const std::string body = connection.Read(std::stoul(head.substr(at)));
            {
              const std::lock_guard lock(mutex_);
              head_ = head;
              body_ = body;
            }
            connection.Send("HTTP/1.1 " + std::to_string(status) +
                            " Whatever\r\nContent-Length: 2\r\n\r\nok");
          }
        }) {}

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()) + "/sms"; }
  int connections() const { return server_.accepted(); }
  std::string head() {
    const std::lock_guard lock(mutex_);
    return head_;
  }
  std::string body() {
    const std::lock_guard lock(mutex_);
    return body_;
  }

 private:
  std::mutex mutex_;
  std::string head_;
  std::string body_;
  test::TcpServer server_;
};

TEST(WebhookProvider, PostsTheEventAndKeepsItsConnection) {
  Receiver receiver(202);
  const auto provider = *WebhookProvider::Open({.url = receiver.url(), .token = "t0ken"});
  EXPECT_TRUE(provider->Deliver(kEvent));
  EXPECT_TRUE(provider->Deliver(kEvent));
  EXPECT_EQ(receiver.body(), EncodeEvent(kEvent));
  EXPECT_THAT(receiver.head(), HasSubstr("POST /sms HTTP/1.1\r\n"));
  EXPECT_THAT(receiver.head(), HasSubstr("Idempotency-Key: id-1\r\n"));
  EXPECT_THAT(receiver.head(), HasSubstr("Authorization: Bearer t0ken\r\n"));
  EXPECT_THAT(receiver.head(), HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_EQ(receiver.connections(), 1);
}

TEST(WebhookProvider, SomeAnswersAreWorthAnotherTry) {
  for (const int status : {301, 302, 401, 403, 404, 405, 407, 408, 425, 429, 500, 503}) {
    Receiver receiver(status);
    const Status delivered = (*WebhookProvider::Open({.url = receiver.url()}))->Deliver(kEvent);
    ASSERT_FALSE(delivered) << status;
    EXPECT_TRUE(MayHelpToRetry(delivered.error())) << status;
  }
  for (const int status : {400, 409, 410, 413, 422}) {
    Receiver receiver(status);
    const Status delivered = (*WebhookProvider::Open({.url = receiver.url()}))->Deliver(kEvent);
    ASSERT_FALSE(delivered) << status;
    EXPECT_FALSE(MayHelpToRetry(delivered.error())) << status;
    EXPECT_THAT(delivered.error().message, HasSubstr(std::to_string(status)));
  }
}

// It accepts a message and closes before it answers, on a reused connection.
TEST(WebhookProvider, AReceiverThatHangsUpIsNotSentTheSameAgain) {
  std::atomic<int> requests = 0;
  test::TcpServer receiver([&](test::TcpConnection& connection) {
    for (;;) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
      if (++requests == 2) return;
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
  });
  const auto provider =
      *WebhookProvider::Open({.url = "http://127.0.0.1:" + std::to_string(receiver.port())});
  ASSERT_TRUE(provider->Deliver(kEvent));
  const Status delivered = provider->Deliver(kEvent);
  EXPECT_EQ(requests, 2);
  ASSERT_FALSE(delivered);
  EXPECT_TRUE(MayHelpToRetry(delivered.error()));
  EXPECT_THAT(delivered.error().message, HasSubstr("without a response"));
  EXPECT_TRUE(provider->Deliver(kEvent));
}

TEST(WebhookProvider, NobodyThereIsWorthAnotherTryAndNamesNoSecret) {
  const auto provider = *WebhookProvider::Open(
      {.url = "http://127.0.0.1:" + std::to_string(test::FreePort()), .token = "t0ken"});
  const Status delivered = provider->Deliver(kEvent);
  ASSERT_FALSE(delivered);
  EXPECT_EQ(delivered.error().code, Code::kUnavailable);
  EXPECT_THAT(delivered.error().message, Not(HasSubstr("t0ken")));
}

TEST(WebhookProvider, NoAnswerInTimeIsADeadline) {
  test::TcpServer silent([](test::TcpConnection& connection) { connection.ReadAll(); });
  const auto provider =
      *WebhookProvider::Open({.url = "http://127.0.0.1:" + std::to_string(silent.port()),
                              .timeout = std::chrono::milliseconds(100)});
  const Status delivered = provider->Deliver(kEvent);
  ASSERT_FALSE(delivered);
  EXPECT_EQ(delivered.error().code, Code::kDeadlineExceeded);
}

TEST(WebhookProvider, NoAnswerFromANameServerInTimeIsADeadline) {
  test::SilentNames names;
  const auto provider =
      *WebhookProvider::Open({.url = std::string("http://") + test::SilentNames::kHost + "/",
                              .timeout = std::chrono::milliseconds(100)});
  const test::Stopwatch watch;
  const Status delivered = provider->Deliver(kEvent);
  EXPECT_LT(watch.elapsed(), test::SilentNames::kSilence / 2);
  ASSERT_FALSE(delivered);
  EXPECT_EQ(delivered.error().code, Code::kDeadlineExceeded);
}

TEST(WebhookProvider, OnlyHttp) {
  EXPECT_FALSE(WebhookProvider::Open({.url = "file:///etc/passwd"}));
  EXPECT_FALSE(WebhookProvider::Open({.url = ""}));
}

}  // namespace
}  // namespace weir::notify
