#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/result.h"

namespace weir::kafka {

/// Where a Kafka cluster is and how to reach it, read from
///   kafka://[user:password@]host[:9092][,host2[:9092]…][?property=value&…]
///
/// The properties are librdkafka's, of these families: security.protocol, ssl.*, sasl.* (files are
/// named, nothing is executed), client.id, client.dns.lookup, broker.address.family,
/// compression.type, linger.ms, socket.*. User and password mean SASL/PLAIN unless
/// `sasl.mechanism` says otherwise. Everything may be percent-encoded. A plain value.
struct Url {
  std::string brokers;  ///< host:port,host:port
  std::vector<std::pair<std::string, std::string>> properties;
};

/// kInvalidArgument names what is wrong and never shows a password.
Result<Url> ParseUrl(std::string_view text);

}  // namespace weir::kafka
