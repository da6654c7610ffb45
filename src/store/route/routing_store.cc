#include "store/route/routing_store.h"

#include <optional>
#include <utility>

#include "store/route/routing_call.h"

namespace weir::store::route {
namespace {

/// The only member that a batch needs, if there is just one and nothing is being moved.
std::optional<std::uint8_t> OnlyMember(const Routes& routes, std::span<const Application> batch) {
  std::optional<std::uint8_t> only;
  for (const Application& application : batch) {
    for (const Charge& charge : application.charges) {
      const Way way = routes.Of(charge.key);
      if (way.moving() || (only && *only != way.member)) return std::nullopt;
      only = way.member;
    }
  }
  return only;
}

}  // namespace

void RoutingCounts::Collect(telemetry::TextWriter& out) const {
  const auto counter = [&out](std::string_view name, std::string_view help, const auto& value) {
    out.Counter(name, help);
    out.Sample(std::uint64_t{value.load(std::memory_order_relaxed)});
  };
  counter("weir_store_split_total", "Checks that span several stores or shards.", split);
  counter("weir_store_undone_total",
          "Charges refunded because another store or shard refused the check.", undone);
  counter("weir_store_not_undone_total", "Charges that could not be refunded.", not_undone);
  counter("weir_store_move_levelled_total",
          "Keys whose earlier use was carried over to the new store.", levelled);
  counter("weir_store_move_missed_total", "Charges that the new store did not answer.", missed);
}

RoutingStore::RoutingStore(std::vector<std::unique_ptr<Store>> members, CurrentRoutes routes,
                           RoutingCounts& counts, std::chrono::milliseconds level_pause)
    : routes_(std::move(routes)),
      shared_(std::make_shared<Shared>(
          Shared{std::move(members), counts, *Quota::AnchoredWindow(1, level_pause)})) {}

RoutingStore::~RoutingStore() {
  // First made invisible to the calls: their answers come while the members are destroyed.
  const std::vector<std::unique_ptr<Store>> gone = std::exchange(shared_->members, {});
}

void RoutingStore::Apply(std::span<Application> batch, Done done) {
  const Routes& routes = routes_();
  if (const auto only = OnlyMember(routes, batch)) {
    return shared_->members[*only]->Apply(batch, std::move(done));
  }
  std::make_shared<RoutingCall>(shared_)->Run(routes, batch, std::move(done));
}

}  // namespace weir::store::route
