#include "store/redis/route.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/key_spread.h"
#include "drivers/redis/cluster.h"
#include "drivers/redis/slot.h"
#include "drivers/redis/url.h"

namespace weir::store::redis {
namespace {

using weir::redis::Address;
using weir::redis::Cluster;
using weir::redis::Command;
using weir::redis::Connection;
using weir::redis::ConnectionOptions;
using weir::redis::Script;

/// One server, several connections.
class ServerRoute final : public Route {
 public:
  ServerRoute(boost::asio::io_context& io, const ConnectionOptions& options, std::size_t count,
              Names names)
      : names_(std::move(names)) {
    for (std::size_t i = 0; i < std::max<std::size_t>(count, 1); ++i) {
      connections_.push_back(std::make_unique<Connection>(io, options));
    }
  }

  void Turn(const Queues&) override {
    lane_ = (lane_ + 1) % static_cast<Lane>(connections_.size());
  }
  std::optional<Lane> LaneOf(const Application&) override { return lane_; }
  // Each connection has its own few calls in flight.
  std::uint32_t ServerOf(Lane lane) const override { return lane; }
  const Names& NamesOf(Lane) const override { return names_; }
  void Call(Lane lane, const Script& script, Command arguments, Connection::Done done) override {
    script.Call(*connections_[lane], std::move(arguments), std::move(done));
  }

 private:
  const Names names_;
  std::vector<std::unique_ptr<Connection>> connections_;
  Lane lane_ = 0;
};

/// A cluster: a call must keep to one slot. When policies change, the places of keys may change as
/// well: a lane is a slot and the generation of places that its keys are named by, so that
/// applications that wait or are under way keep the names they were sorted by.
class ClusterRoute final : public Route {
 public:
  ClusterRoute(boost::asio::io_context& io, const Options& options, ConnectionOptions connection,
               const Address& address, const Names& names)
      : spread_(names.tagged_by_entry() || !address.spread ? nullptr : options.spread),
        generations_(kGenerations, names),
        cluster_(io, std::move(connection), address.endpoints, options.connections,
                 options.masters) {}

  void Turn(const Queues& queues) override {
    if (spread_ == nullptr) return;
    std::shared_ptr<const KeyPlaces> places = spread_->Current();
    if (places == names().places()) return;
    const Names next = names().At(std::move(places));
    generation_ = (generation_ + 1) % kGenerations;
    generations_[generation_] = next;
    ForgetUnused(queues);
  }

  std::optional<Lane> LaneOf(const Application& application) override {
    const std::string tag = names().Tag(application.charges[0].key);
    for (const Charge& charge : application.charges.subspan(1)) {
      if (names().Tag(charge.key) != tag) return std::nullopt;
    }
    return SlotOf(tag) + (generation_ << kSlotBits);
  }

  std::vector<std::vector<std::uint32_t>> Apart(const Application& application) const override {
    std::map<std::string, std::vector<std::uint32_t>> by_tag;
    for (std::uint32_t i = 0; i < application.charges.size(); ++i) {
      by_tag[names().Tag(application.charges[i].key)].push_back(i);
    }
    std::vector<std::vector<std::uint32_t>> groups;
    groups.reserve(by_tag.size());
    for (auto& [tag, positions] : by_tag) groups.push_back(std::move(positions));
    return groups;
  }

  std::uint32_t ServerOf(Lane lane) const override { return cluster_.MasterOf(SlotIn(lane)); }
  const Names& NamesOf(Lane lane) const override { return generations_[lane >> kSlotBits]; }

  std::string GroupOf(std::string_view key) const override { return names().Tag(key); }

  std::uint32_t PartOf(const Application& application) const override {
    return application.charges.empty() ? 0 : PartOf(application.charges[0].key);
  }

  // Any key works whose slot is there. None: that master has no slots any more.
  std::optional<std::string> ProbeKey(std::uint32_t part) const override {
    if (part == 0) return std::nullopt;
    for (int i = 0; i < kProbeTries; ++i) {
      std::string key = "{weir-probe-" + std::to_string(i) + "}";
      if (PartOf(key) == part) return key;
    }
    return std::nullopt;
  }

  void Call(Lane lane, const Script& script, Command arguments, Connection::Done done) override {
    cluster_.Call(SlotIn(lane), script, std::move(arguments), std::move(done));
  }

 private:
  // With many small ranges of slots, and bad luck, a master is not found; that costs a probe that
  // goes to another.
  static constexpr int kProbeTries = 4096;
  static constexpr unsigned kSlotBits = 16;
  // A call ends long before policies have changed this often.
  static constexpr Lane kGenerations = 64;

  static std::uint16_t SlotIn(Lane lane) {
    return static_cast<std::uint16_t>(lane & ((Lane{1} << kSlotBits) - 1));
  }
  static std::uint16_t SlotOf(const std::string& tag) {
    return weir::redis::SlotOf("{" + tag + "}");
  }
  std::uint32_t PartOf(std::string_view key) const {
    return cluster_.MasterOf(SlotOf(names().Tag(key)));
  }
  const Names& names() const { return generations_[generation_]; }
  // Places grow with the number of policies.
  void ForgetUnused(const Queues& queues) {
    std::set<Lane> used = {generation_};
    for (const Lane lane : queues.Lanes()) used.insert(lane >> kSlotBits);
    for (Lane i = 0; i < kGenerations; ++i) {
      if (!used.contains(i)) generations_[i] = names().At(nullptr);
    }
  }

  const std::shared_ptr<const KeySpread> spread_;
  std::vector<Names> generations_;
  Lane generation_ = 0;
  Cluster cluster_;
};

}  // namespace

Result<std::unique_ptr<Route>> MakeRoute(boost::asio::io_context& io, const Options& options) {
  const Result<Address> address = weir::redis::ParseUrl(options.url);
  if (!address.ok()) return address.error();
  if (options.prefix.find_first_of("{}") != std::string::npos) {
    return Error{Code::kInvalidArgument, "redis: the key prefix must not contain braces"};
  }
  ConnectionOptions connection = ConnectionOptions::Of(*address);
  connection.connect_timeout = options.connect_timeout;
  connection.command_timeout = options.command_timeout;
  Names names(options.prefix, address->cluster,
              options.tag_entry.empty() ? address->tag : options.tag_entry);
  if (address->cluster) {
    return std::unique_ptr<Route>(
        std::make_unique<ClusterRoute>(io, options, std::move(connection), *address, names));
  }
  return std::unique_ptr<Route>(
      std::make_unique<ServerRoute>(io, connection, options.connections, names));
}

}  // namespace weir::store::redis
