#include "notify/courier.h"

#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace weir::notify {
namespace {

using std::chrono::milliseconds;

/// Delivers as scripted by the test.
class Provided final : public Provider {
 public:
  explicit Provided(std::function<Status(const Event&)> deliver) : deliver_(std::move(deliver)) {}
  Status Deliver(const Event& event) override { return deliver_(event); }

 private:
  std::function<Status(const Event&)> deliver_;
};

Parcel ParcelOf(const std::string& id, const std::string& user) {
  return {.event = {.id = id, .user_id = user, .message = "hi"}};
}

class CourierTest : public testing::Test {
 protected:
  void Deliver(Provider& provider, std::function<bool(const Event&)> is_settled,
               std::vector<Parcel>& parcels) {
    std::vector<Parcel*> all;
    for (Parcel& parcel : parcels) all.push_back(&parcel);
    Courier courier(
        provider, stats_, SystemClock::Get(),
        {.workers = 2,
         .retry = {.attempts = 2, .first_pause = milliseconds(1), .longest_pause = milliseconds(1)},
         .may_delay = true,
         .is_settled = std::move(is_settled)},
        stop_.get_token());
    courier.Deliver(all);
  }
  /// Two users whose messages are delivered by different workers, of two.
  static std::pair<std::string, std::string> TwoUsers() {
    const std::hash<std::string> hash;
    for (int i = 0;; ++i) {
      const std::string other = "user" + std::to_string(i);
      if (hash(other) % 2 != hash("ann") % 2) return {"ann", other};
    }
  }

  DeliveryStats stats_;
  std::stop_source stop_;
};

TEST_F(CourierTest, AfterAStopNobodyIsAsked) {
  int asked = 0;
  Provided provider([&](const Event&) {
    stop_.request_stop();
    return Status();
  });
  std::vector<Parcel> parcels = {ParcelOf("a", "ann")};
  const auto ask = [&](const Event&) {
    ++asked;
    return false;
  };
  Deliver(provider, ask, parcels);
  EXPECT_EQ(parcels[0].fate, Fate::kDelivered);
  EXPECT_EQ(asked, 1);
  std::vector<Parcel> rest = {ParcelOf("b", "ann")};
  Deliver(provider, ask, rest);
  EXPECT_EQ(rest[0].fate, Fate::kWaiting);
  EXPECT_EQ(asked, 1);
}

// While the database was queried for one message, another was delivered. Then the provider went
// down: that is not the first one's fault.
TEST_F(CourierTest, WhatWasDeliveredBeforeTheAnswerSaysNothingAboutAProviderThatIsDown) {
  const auto [slow, quick] = TwoUsers();
  std::latch delivered(1);
  Provided provider([&](const Event& event) -> Status {
    if (event.user_id == quick) return {};
    return Error{Code::kUnavailable, "down"};
  });
  std::vector<Parcel> parcels = {ParcelOf("a", slow), ParcelOf("b", quick)};
  for (Parcel& parcel : parcels) parcel.event.created_at = NowMicros(SystemClock::Get());
  // The quick one is requested first, delivered, and requested again as "c": so it has been
  // delivered by then.
  parcels.push_back(ParcelOf("c", quick));
  parcels.back().event.created_at = parcels[0].event.created_at;
  Deliver(
      provider,
      [&](const Event& event) {
        if (event.id == "c") delivered.count_down();
        if (event.id == "a") delivered.wait();
        return event.id == "c";
      },
      parcels);
  EXPECT_EQ(parcels[1].fate, Fate::kDelivered);
  EXPECT_EQ(parcels[0].fate, Fate::kDelayed) << parcels[0].reason;
}

TEST_F(CourierTest, ARepetitionOfWhatAnotherSenderDeliveredIsRecorded) {
  Provided provider([](const Event&) { return Status(); });
  std::vector<Parcel> parcels = {ParcelOf("a", "ann"), ParcelOf("b", "ann")};
  parcels[0].event.created_at = parcels[1].event.created_at = NowMicros(SystemClock::Get());
  parcels[1].event.earlier_id = "a";
  Deliver(
      provider, [](const Event& event) { return event.id == "a"; }, parcels);
  EXPECT_EQ(parcels[0].fate, Fate::kDuplicate);
  EXPECT_FALSE(parcels[0].unrecorded);
  EXPECT_EQ(parcels[1].fate, Fate::kDuplicate);
  EXPECT_TRUE(parcels[1].unrecorded);
}

}  // namespace
}  // namespace weir::notify
