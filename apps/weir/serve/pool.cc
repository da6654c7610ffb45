#include "serve/pool.h"

#include <algorithm>
#include <string>

#include "net/descriptors.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

using telemetry::Level;
using telemetry::Log;

/// If the limit on open files leaves fewer connections than this, that is always worth a warning.
constexpr std::size_t kFewConnections = 1'000;

/// The default number was not chosen by anyone, so slightly fewer are no reason to warn.
std::size_t ConnectionsOf(const config::Config& config, std::size_t descriptors) {
  const std::size_t wanted = config.limits.max_connections;
  const net::DescriptorBudget budget = net::FitToDescriptors(wanted * descriptors);
  const std::size_t connections = budget.connections / descriptors;
  if (connections < wanted) {
    const std::string needed = std::to_string(wanted * descriptors + net::kReservedDescriptors);
    const std::string hint = "raise the hard limit on open files to " + needed + " (ulimit -Hn)";
    const bool asked_for = wanted != config::Config{}.limits.max_connections;
    const bool matters = asked_for || connections < kFewConnections;
    Log(matters ? Level::kWarn : Level::kDebug,
        "too few file descriptors for limits.max_connections",
        {{"connections", static_cast<std::int64_t>(connections)},
         {"max_connections", static_cast<std::int64_t>(wanted)},
         {"open_files", static_cast<std::int64_t>(budget.limit)},
         {"hint", std::string_view(hint)}});
  }
  return std::max<std::size_t>(connections, 1);
}

/// Clients on this machine, and proxies, connect for many.
net::ClientBound ClientsOf(const config::Config& config, std::size_t connections) {
  net::ClientBound bound;
  bound.most = config.limits.max_connections_per_address;
  if (bound.most == 0) bound.most = std::max<std::size_t>(connections / 2, 1);
  bound.exempt = config.trusted_proxies;
  for (const char* const loopback : {"127.0.0.0/8", "::1"}) {
    bound.exempt.push_back(*IpNetwork::Parse(loopback));
  }
  return bound;
}

}  // namespace

net::PoolOptions PoolOf(const config::Config& config, std::size_t descriptors) {
  const std::size_t connections = ConnectionsOf(config, descriptors);
  return {.reactors = config.threads,
          .max_connections = connections,
          .clients = ClientsOf(config, connections)};
}

}  // namespace weir::app
