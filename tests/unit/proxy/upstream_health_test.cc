#include "proxy/upstream_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "support/log_capture.h"

namespace weir::proxy {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class UpstreamHealthTest : public testing::Test {
 protected:
  std::string Logged() { return log_.Take(); }

  test::LogCapture log_;
  ManualClock clock_{1'000'000'000'000};
  UpstreamHealth health_{"http://10.0.0.1:80", clock_};
};

TEST_F(UpstreamHealthTest, AnOutageIsOneWarningAndItsEndOneLine) {
  health_.NoteResponse();
  EXPECT_THAT(Logged(), Not(HasSubstr("upstream")));
  health_.NoteFailure("Connection refused");
  const std::string began = Logged();
  EXPECT_THAT(began, HasSubstr(R"("message":"requests to an upstream are failing")"));
  EXPECT_THAT(began, HasSubstr(R"("upstream":"http://10.0.0.1:80","error":"Connection refused")"));
  EXPECT_FALSE(health_.up());
  clock_.Advance(30s);
  health_.NoteFailure("Connection refused");
  EXPECT_THAT(Logged(), Not(HasSubstr("upstream")));
  health_.NoteResponse();
  health_.NoteResponse();
  EXPECT_THAT(Logged(), HasSubstr(R"("message":"the upstream answers again")"));
  EXPECT_TRUE(health_.up());
}

TEST_F(UpstreamHealthTest, ALongOutageIsRepeatedEachMinute) {
  health_.NoteFailure("Connection refused");
  EXPECT_THAT(Logged(), HasSubstr("failing"));
  clock_.Advance(59s);
  health_.NoteFailure("Connection refused");
  EXPECT_THAT(Logged(), Not(HasSubstr("failing")));
  clock_.Advance(1s);
  health_.NoteFailure("Connection refused");
  EXPECT_THAT(Logged(), HasSubstr("failing"));
}

TEST_F(UpstreamHealthTest, SingleFailuresDoNotFillTheLog) {
  health_.NoteFailure("reset");
  health_.NoteResponse();
  EXPECT_THAT(Logged(), HasSubstr("answers again"));
  health_.NoteFailure("reset");
  EXPECT_FALSE(health_.up());
  health_.NoteResponse();
  EXPECT_TRUE(health_.up());
  EXPECT_THAT(Logged(), Not(HasSubstr("upstream")));
  health_.NoteFailure("reset");
  clock_.Advance(10s);
  health_.NoteFailure("reset");
  EXPECT_THAT(Logged(), HasSubstr("failing")) << "this time it lasts";
}

}  // namespace
}  // namespace weir::proxy
