// The answers of envoyproxy/ratelimit, request by request, compared with ours: the same limits
// (recorded/limits.yaml), the same requests at the same seconds, every field of every answer.

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "envoy/service/ratelimit/v3/rls.pb.h"
#include "protocol/grpc/rls.h"
#include "support/paths.h"
#include "unit/limiter/fixture.h"
#include "unit/protocol/grpc/session_fixture.h"

namespace weir::grpc::testing {
namespace {

using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
using google::protobuf::ListValue;
using google::protobuf::Value;
using google::protobuf::util::JsonStringToMessage;
using google::protobuf::util::MessageToJsonString;

std::string FileText(const std::string& name) {
  std::ifstream file(test::SourcePath("tests/unit/protocol/grpc/recorded/" + name));
  EXPECT_TRUE(file.is_open()) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

template <typename Message>
Message Convert(const Value& value) {
  std::string json;
  Message message;
  EXPECT_TRUE(MessageToJsonString(value, &json).ok());
  EXPECT_TRUE(JsonStringToMessage(json, &message).ok()) << json;
  return message;
}

/// The recorded version never denied because of a limit in quota mode and showed it as OK, without
/// a time. Later versions show it as over, and deny a request all of whose quotas are over; so do
/// we. True if that changes the answer.
bool MakeAnswerLater(Nanos at, const RateLimitRequest& request, RateLimitResponse& answer) {
  int quotas = 0;
  int over = 0;
  for (int i = 0; i < request.descriptors_size(); ++i) {
    const auto& entries = request.descriptors(i).entries();
    if (entries.empty() || entries[0].key() != "budget") continue;
    ++quotas;
    RateLimitResponse::DescriptorStatus& status = *answer.mutable_statuses(i);
    if (status.has_duration_until_reset()) continue;
    ++over;
    status.set_code(RateLimitResponse::OVER_LIMIT);
    const std::int64_t second = at / 1'000'000'000;
    status.mutable_duration_until_reset()->set_seconds(86'400 - second % 86'400);
  }
  if (quotas > 0 && over == quotas) answer.set_overall_code(RateLimitResponse::OVER_LIMIT);
  return over > 0;
}

/// One request and its answer, at a second.
struct Fact {
  Nanos at = 0;
  RateLimitRequest request;
  RateLimitResponse answer;
  bool changed = false;
};

std::vector<Fact> Facts(const std::string& part) {
  Value root;
  EXPECT_TRUE(JsonStringToMessage(FileText("answers.json"), &root).ok());
  std::vector<Fact> facts;
  for (const Value& value : root.struct_value().fields().at(part).list_value().values()) {
    const ListValue& triple = value.list_value();
    Fact& fact = facts.emplace_back();
    fact.at = static_cast<Nanos>(triple.values(0).number_value()) * 1'000'000'000;
    fact.request = Convert<RateLimitRequest>(triple.values(1));
    fact.answer = Convert<RateLimitResponse>(triple.values(2));
    fact.changed = MakeAnswerLater(fact.at, fact.request, fact.answer);
  }
  return facts;
}

bool NamesWatchedLimit(const RateLimitRequest& request) {
  for (const auto& descriptor : request.descriptors()) {
    for (const auto& entry : descriptor.entries()) {
      if (entry.key() == "watched" || entry.key() == "budget") return true;
    }
  }
  return false;
}

class RecordedTest : public SessionTest {
 protected:
  /// `charge`: a line put in front of the file, or nothing.
  void Serve(const std::string& charge, RlsOptions options) {
    world_.emplace(charge + FileText("limits.yaml"));
    limiter_ = world_->NewLimiter();
    decider_ = std::make_unique<Decider>(*limiter_);
    options.clock = &world_->clock();
    services_.Add(std::string(kShouldRateLimitPath), MakeShouldRateLimit(*decider_, options));
    services_.OnBurstEnd([this] { decider_->Flush(); });
  }

  RateLimitResponse Ask(const Fact& fact) {
    world_->clock().Advance(std::chrono::nanoseconds(fact.at - world_->clock().Now()));
    const Answer answer = CallAndWait(std::string(kShouldRateLimitPath), Framed(fact.request));
    EXPECT_EQ(answer.status(), "0") << answer.message();
    RateLimitResponse response;
    EXPECT_TRUE(response.ParseFromString(answer.messages().at(0)));
    return response;
  }

  void ExpectNoLess() {
    for (const Fact& fact : Facts("plain")) {
      const RateLimitResponse ours = Ask(fact);
      if (fact.answer.overall_code() != RateLimitResponse::OK) continue;
      EXPECT_EQ(ours.overall_code(), RateLimitResponse::OK) << fact.request.ShortDebugString();
    }
  }

  static std::string Difference(const RateLimitResponse& theirs, const RateLimitResponse& ours) {
    google::protobuf::util::MessageDifferencer differencer;
    std::string report;
    differencer.ReportDifferencesToString(&report);
    return differencer.Compare(theirs, ours) ? "" : report;
  }

  std::optional<limiter::test::World> world_;
  std::unique_ptr<limiter::PolicyLimiter> limiter_;
  std::unique_ptr<Decider> decider_;
};

// docs/guide/from-envoy-ratelimit.md states how many answers there are, and how many of them differ
// from the recorded ones.
TEST(Recorded, TheNumbersOfTheGuide) {
  const auto changed = [](const std::vector<Fact>& facts) {
    return std::count_if(facts.begin(), facts.end(), [](const Fact& fact) { return fact.changed; });
  };
  const std::vector<Fact> plain = Facts("plain");
  const std::vector<Fact> rich = Facts("rich");
  EXPECT_EQ(plain.size(), 240U);
  EXPECT_EQ(rich.size(), 38U);
  EXPECT_EQ(changed(plain), 13);
  EXPECT_EQ(changed(rich), 3);
}

TEST_F(RecordedTest, WithChargeAlwaysEveryAnswerIsTheSame) {
  Serve("charge: always\n", {});
  const std::vector<Fact> facts = Facts("plain");
  ASSERT_GE(facts.size(), 200U);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    EXPECT_EQ(Difference(facts[i].answer, Ask(facts[i])), "")
        << "fact " << i << ": " << facts[i].request.ShortDebugString();
  }
}

TEST_F(RecordedTest, HeadersAndMetadataAreTheSameToo) {
  RlsOptions options;
  options.headers = true;
  options.reset_header = "x-reset";
  options.dynamic_metadata = true;
  Serve("charge: always\n", options);
  const std::vector<Fact> facts = Facts("rich");
  ASSERT_GE(facts.size(), 30U);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    RateLimitResponse ours = Ask(facts[i]);
    auto& headers = *ours.mutable_response_headers_to_add();
    // Only we say when to retry.
    if (!headers.empty() && headers.rbegin()->key() == "retry-after") headers.RemoveLast();
    RateLimitResponse theirs = facts[i].answer;
    // They report limits that never deny to clients as well.
    if (NamesWatchedLimit(facts[i].request)) {
      headers.Clear();
      theirs.clear_response_headers_to_add();
    }
    EXPECT_EQ(Difference(theirs, ours), "")
        << "fact " << i << ": " << facts[i].request.ShortDebugString();
  }
}

// A denied request charges nothing, so clients get more later, never less.
TEST_F(RecordedTest, ByDefaultNothingIsRefusedThatTheyLetPass) {
  Serve("", {});
  ExpectNoLess();
}

TEST_F(RecordedTest, WithAllOrNoneNothingIsRefusedThatTheyLetPass) {
  Serve("charge: all_or_none\n", {});
  ExpectNoLess();
}

// A gateway that checks with no hits first and reports the hits afterwards needs no other setting.
TEST_F(RecordedTest, BudgetsThatAreReportedEndByDefaultAsTheyDoThere) {
  Serve("", {});
  std::size_t compared = 0;
  for (const Fact& fact : Facts("plain")) {
    const RateLimitResponse ours = Ask(fact);
    const auto& first = fact.request.descriptors(0);
    if (first.entries_size() == 0 || first.entries(0).key() != "tokens" ||
        !first.entries(0).value().starts_with("u")) {
      continue;
    }
    ++compared;
    EXPECT_EQ(Difference(fact.answer, ours), "") << fact.request.ShortDebugString();
  }
  EXPECT_EQ(compared, 10U);
}

}  // namespace
}  // namespace weir::grpc::testing
