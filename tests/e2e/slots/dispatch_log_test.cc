// What `weir dispatch` logs about a bank and a service that misbehave: what is true, once, and also
// the recovery. Service and bank are scripts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "scripted_service.h"

namespace weir::slots {
namespace {

using namespace std::chrono_literals;

/// The number of occurrences of `part` in `text`.
int Times(const std::string& text, const std::string& part) {
  int times = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++times;
  return times;
}

/// A bank that accepts nothing until it opens. Thread-safe.
class ClosedBank {
 public:
  void Open() { open_ = true; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()) + "/pay"; }

 private:
  std::atomic<bool> open_ = false;
  test::TcpServer server_{[this](test::TcpConnection& connection) {
    for (;;) {
      ReadRequest(connection);
      connection.Send(std::string("HTTP/1.1 ") + (open_ ? "200 OK" : "500 No") +
                      "\r\nContent-Length: 0\r\n\r\n");
    }
  }};
};

TEST(DispatchLog, ATargetThatIsBackIsLoggedWithTheTimeThatItWasAway) {
  std::atomic<int> number = 0;
  const Service service([&](const std::string&, int) {
    return std::vector<Service::Given>{{"e" + std::to_string(++number)}};
  });
  ClosedBank bank;
  auto dispatcher = Dispatch(service, bank.url(), {"--config", "pay"});
  ASSERT_TRUE(dispatcher->WaitForError("the target is down")) << dispatcher->error_output();
  bank.Open();
  const auto back = dispatcher->WaitForError("the target is back");
  ASSERT_TRUE(back) << dispatcher->error_output();
  EXPECT_THAT(*back, testing::HasSubstr("away_ms"));
  dispatcher->Terminate();
  EXPECT_EQ(Times(dispatcher->error_output(), "the target is "), 2);
}

TEST(DispatchLog, OnePaymentThatFailsAloneIsNotATargetThatIsDown) {
  std::atomic<int> attempt = 0;
  const Service service([&](const std::string&, int) {
    return std::vector<Service::Given>{{"odd", ++attempt}};
  });
  ClosedBank bank;
  auto dispatcher = Dispatch(service, bank.url(), {"--config", "pay"});
  const auto told = dispatcher->WaitForError("one event keeps failing");
  ASSERT_TRUE(told) << dispatcher->error_output();
  EXPECT_THAT(*told, testing::HasSubstr("odd"));
  bank.Open();
  EXPECT_TRUE(dispatcher->WaitForError("deliveries to the target succeed again"))
      << dispatcher->error_output();
  dispatcher->Terminate();
  EXPECT_EQ(Times(dispatcher->error_output(), "the target is down"), 0);
}

TEST(DispatchLog, AStoreThatTakesNoReportsIsLoggedOnce) {
  std::atomic<bool> given = false;
  std::atomic<int> refused = 0;
  const Service service(
      [&](const std::string&, int) {
        return given.exchange(true) ? std::vector<Service::Given>()
                                    : std::vector<Service::Given>{{"e1"}};
      },
      [&](const std::string&) { return ++refused <= 4 ? 503 : 0; });
  SlowBank bank(1ms);
  auto dispatcher = Dispatch(service, bank.url(), {"--config", "pay"});
  ASSERT_TRUE(dispatcher->WaitForError("reporting deliveries to the store again"))
      << dispatcher->error_output();
  EXPECT_TRUE(service.done().contains("e1"));
  dispatcher->Terminate();
  EXPECT_EQ(Times(dispatcher->error_output(), "cannot report deliveries"), 1)
      << dispatcher->error_output();
}

TEST(DispatchLog, AKeyThatIsRefusedAtTheStartEndsIt) {
  for (const char* status : {"401 Unauthorized", "403 Forbidden"}) {
    const Service service(
        [](const std::string&, int) { return std::vector<Service::Given>(); }, {},
        [&](const std::string&) { return Answer(R"({"message":"wrong role"})", status); });
    auto dispatcher = Dispatch(service, "http://127.0.0.1:1/pay", {"--config", "pay"});
    EXPECT_EQ(dispatcher->Wait(), 4) << dispatcher->error_output();
    EXPECT_THAT(dispatcher->error_output(),
                testing::HasSubstr("weir: " + std::string(status).substr(0, 3) + ": wrong role"));
  }
}

TEST(DispatchLog, AKeyThatIsRefusedLaterMayBeAcceptedAgain) {
  std::atomic<int> asked = 0;
  const Service service([](const std::string&, int) { return std::vector<Service::Given>(); }, {},
                        [&](const std::string&) {
                          return ++asked == 2 ? Answer(R"({"message":"no"})", "403 Forbidden") : "";
                        });
  auto dispatcher = Dispatch(service, "http://127.0.0.1:1/pay", {"--config", "pay"});
  EXPECT_TRUE(dispatcher->WaitForError("claiming events again")) << dispatcher->error_output();
  dispatcher->Terminate();
}

}  // namespace
}  // namespace weir::slots
