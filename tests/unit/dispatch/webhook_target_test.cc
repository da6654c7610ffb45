#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include "dispatch/delivery_target.h"
#include "support/tcp_server.h"

namespace weir::app {
namespace {

using namespace std::chrono_literals;

slots::Claimed Payment(const std::string& id) {
  return {.slot = {.event_id = id, .config = "pay"}, .attempt = 1};
}

/// A receiver that blocks its first request until LetGo.
class Receiver {
 public:
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()) + "/"; }
  int requests() const { return requests_; }
  void AwaitFirst() { ASSERT_EQ(arrived_.get_future().wait_for(30s), std::future_status::ready); }
  void LetGo() { go_.set_value(); }

 private:
  void Serve(test::TcpConnection& connection) {
    for (;;) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
      if (++requests_ == 1) {
        arrived_.set_value();
        released_.wait();
      }
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
  }

  std::atomic<int> requests_ = 0;
  std::promise<void> arrived_;
  std::promise<void> go_;
  std::shared_future<void> released_ = go_.get_future().share();
  test::TcpServer server_{[this](test::TcpConnection& connection) { Serve(connection); }};
};

// While a machine is suspended its steady clock stops, but leases end all the same: another
// dispatcher may have delivered what is in the queue.
TEST(WebhookTarget, DeliversNothingThatTheMachineSleptThrough) {
  Receiver receiver;
  auto target = MakeWebhookTarget({.url = receiver.url(), .workers = 1});
  ASSERT_TRUE(target.ok()) << target.error().message;
  std::promise<Status> first;
  std::promise<Status> second;
  (*target)->Deliver(Payment("first"), Latest::In(1h),
                     [&](Status status) { first.set_value(std::move(status)); });
  receiver.AwaitFirst();
  Latest slept = Latest::In(1h);
  slept.wall -= 2h;  // as if the wall clock had advanced by two hours
  (*target)->Deliver(Payment("second"), slept,
                     [&](Status status) { second.set_value(std::move(status)); });
  receiver.LetGo();
  EXPECT_TRUE(first.get_future().get().ok());
  const Status left = second.get_future().get();
  ASSERT_FALSE(left.ok());
  EXPECT_EQ(left.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(receiver.requests(), 1);
}

TEST(WebhookTarget, DeliversWhatWaitedNoLongerThanItsLease) {
  Receiver receiver;
  auto target = MakeWebhookTarget({.url = receiver.url(), .workers = 1});
  ASSERT_TRUE(target.ok()) << target.error().message;
  receiver.LetGo();
  for (const char* id : {"first", "second"}) {
    std::promise<Status> told;
    (*target)->Deliver(Payment(id), Latest::In(1h),
                       [&](Status status) { told.set_value(std::move(status)); });
    EXPECT_TRUE(told.get_future().get().ok());
  }
  EXPECT_EQ(receiver.requests(), 2);
}

}  // namespace
}  // namespace weir::app
