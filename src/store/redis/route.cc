#include "store/redis/route.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  ServerRoute(boost::asio::io_context& io, const ConnectionOptions& options, std::size_t count) {
    for (std::size_t i = 0; i < std::max<std::size_t>(count, 1); ++i) {
      connections_.push_back(std::make_unique<Connection>(io, options));
    }
  }

  void Turn() override { lane_ = (lane_ + 1) % static_cast<Lane>(connections_.size()); }
  Result<Lane> LaneOf(const Application&) override { return lane_; }
  void Call(Lane lane, const Script& script, Command arguments, Connection::Done done) override {
    script.Call(*connections_[lane], std::move(arguments), std::move(done));
  }

 private:
  std::vector<std::unique_ptr<Connection>> connections_;
  Lane lane_ = 0;
};

/// A cluster: a call must keep to one slot.
class ClusterRoute final : public Route {
 public:
  ClusterRoute(boost::asio::io_context& io, ConnectionOptions options, const Address& address,
               std::size_t connections, Names names, std::shared_ptr<weir::redis::Masters> masters)
      : names_(std::move(names)),
        cluster_(io, std::move(options), address.endpoints, connections, std::move(masters)) {}

  void Turn() override {}

  Result<Lane> LaneOf(const Application& application) override {
    const std::string tag = names_.Tag(application.charges[0].key);
    for (const Charge& charge : application.charges.subspan(1)) {
      if (names_.Tag(charge.key) != tag) {
        return Error{Code::kFailedPrecondition,
                     "redis: keys that are charged together must be of one domain (and with "
                     "tag_entry of one value of that entry), since a cluster decides within one "
                     "slot only"};
      }
    }
    return Lane{SlotOf(tag)};
  }

  std::uint32_t PartOf(const Application& application) const override {
    return application.charges.empty() ? 0 : PartOf(application.charges[0].key);
  }

  // Any will do that has its slot there. None: that master has no slots any more.
  std::optional<std::string> ProbeKey(std::uint32_t part) const override {
    if (part == 0) return std::nullopt;
    for (int i = 0; i < kProbeTries; ++i) {
      std::string key = "{weir-probe-" + std::to_string(i) + "}";
      if (PartOf(key) == part) return key;
    }
    return std::nullopt;
  }

  void Call(Lane lane, const Script& script, Command arguments, Connection::Done done) override {
    cluster_.Call(static_cast<std::uint16_t>(lane), script, std::move(arguments), std::move(done));
  }

 private:
  // With many small ranges of slots, and bad luck, a master is not found; that costs a probe that
  // asks another.
  static constexpr int kProbeTries = 4096;

  static std::uint16_t SlotOf(const std::string& tag) {
    return weir::redis::SlotOf("{" + tag + "}");
  }
  std::uint32_t PartOf(std::string_view key) const {
    return cluster_.MasterOf(SlotOf(names_.Tag(key)));
  }

  Names names_;
  Cluster cluster_;
};

}  // namespace

Result<Routed> MakeRoute(boost::asio::io_context& io, const Options& options) {
  const Result<Address> address = weir::redis::ParseUrl(options.url);
  if (!address.ok()) return address.error();
  if (options.prefix.find_first_of("{}") != std::string::npos) {
    return Error{Code::kInvalidArgument, "redis: the prefix of keys must not hold braces"};
  }
  ConnectionOptions connection = ConnectionOptions::Of(*address);
  connection.connect_timeout = options.connect_timeout;
  connection.command_timeout = options.command_timeout;
  Names names(options.prefix, address->cluster,
              options.tag_entry.empty() ? address->tag : options.tag_entry);
  if (address->cluster) {
    return Routed{std::make_unique<ClusterRoute>(io, std::move(connection), *address,
                                                 options.connections, names, options.masters),
                  names};
  }
  return Routed{std::make_unique<ServerRoute>(io, connection, options.connections), names};
}

}  // namespace weir::store::redis
