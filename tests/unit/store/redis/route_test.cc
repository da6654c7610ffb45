#include "store/redis/route.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <memory>

#include "base/key_spread.h"

namespace weir::store::redis {
namespace {

class ClusterRouteTest : public ::testing::Test {
 protected:
  ClusterRouteTest() {
    Options options;
    options.url = "redis+cluster://127.0.0.1:1";  // nothing is sent
    options.spread = spread_;
    route_ = *MakeRoute(io_, options);
  }
  /// Publishes new places, which only the route keeps alive once others are in force.
  std::weak_ptr<const KeyPlaces> Publish(const char* policy) {
    KeyPlaces places;
    places[policy] = {.whole = true};
    spread_->Publish(std::move(places));
    route_->Turn(queues_);
    return spread_->Current();
  }
  Route::Lane LaneOf(const char* key) {
    const Charge charge{key, 1, &quota_};
    Application application;
    application.charges = {&charge, 1};
    return *route_->LaneOf(application);
  }

  boost::asio::io_context io_;
  const Quota quota_ = *Quota::TokenBucket(1, 1);
  const std::shared_ptr<KeySpread> spread_ = std::make_shared<KeySpread>();
  Queues queues_;
  std::unique_ptr<Route> route_;
};

TEST_F(ClusterRouteTest, PlacesOfEarlierPoliciesAreForgotten) {
  const auto first = Publish("api/a");
  EXPECT_FALSE(first.expired());
  (void)Publish("api/b");
  EXPECT_TRUE(first.expired());
}

TEST_F(ClusterRouteTest, PlacesThatACallIsNamedByAreKeptUntilItIsOver) {
  const auto first = Publish("api/a");
  const Route::Lane lane = LaneOf("api/a|user:1");
  Application application;
  queues_.Of(lane, 0).Add({&application, nullptr});
  (void)Publish("api/b");
  EXPECT_FALSE(first.expired());
  EXPECT_EQ(route_->NamesOf(lane).places(), first.lock());
  (void)queues_.TakeAll();
  (void)Publish("api/c");
  EXPECT_TRUE(first.expired());
}

}  // namespace
}  // namespace weir::store::redis
