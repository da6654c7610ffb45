#pragma once

#include <cstddef>
#include <string>

namespace weir::bench {

/// The implementation without Weir: checks per second of a token bucket on this many connections,
/// each of which waits for its response; over `keys` keys that exist already. The SQL ones run one
/// transaction per check (begin, select for update, update, commit).
double PlainPostgres(const std::string& url, int connections, std::size_t keys, double seconds);
double PlainMysql(const std::string& url, int connections, std::size_t keys, double seconds);
/// A script call per check; `depth` of them in flight on each connection.
double PlainRedis(int port, int connections, int depth, std::size_t keys, double seconds);

}  // namespace weir::bench
