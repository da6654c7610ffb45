#pragma once

#include <string>

namespace weir::bench {

/// Sends per second of the straightforward program, on the same servers: one connection to each,
/// and for every send one synchronous publish and one commit. No HTTP in front of it.
///
/// PostgreSQL: BEGIN, SELECT … FOR UPDATE, publish and wait, UPDATE, COMMIT.
double PlainPostgres(const std::string& postgres, const std::string& brokers, double seconds);
/// Redis: a script that compares and counts, publish and wait, update the row.
double PlainRedis(const std::string& postgres, int redis_port, const std::string& brokers,
                  double seconds);
/// SQLite with synchronous=FULL: row, count and outbox in one transaction for every send.
double PlainSqlite(const std::string& file, double seconds);

}  // namespace weir::bench
