#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/sqlite/database.h"
#include "protocol/http/message.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::server {

/// One change that somebody made.
struct AuditEntry {
  std::int64_t id = 0;
  Nanos at = 0;
  std::string who = {};
  std::string action = {};  ///< "policy.update", "key.reset", "slots.config", …
  std::string target = {};  ///< "policy:user-123", "key:user-123", …
  std::string before = {};  ///< JSON, or empty
  std::string after = {};   ///< JSON, or empty
  std::int64_t undoes = 0;  ///< the entry that this one took back; 0: none
};

/// Who makes a request: the first 8 hexadecimal digits of the SHA-256 of the API key, and the
/// address: "key 1a2b3c4d from 127.0.0.1", or "127.0.0.1" without a key.
std::string WhoAsks(const http::Request& request);

/// {"id":1,"at":"2026-…","who":…,"action":…,"target":…,"before":{…}|null,"after":{…}|null}
void AppendJson(std::string& out, const AuditEntry& entry);

/// Every change through the admin API, for ever, in the embedded database.
///
/// Thread-safe. The database must be closed before this is destroyed, or have no jobs left.
class AuditLog {
 public:
  /// Told once the entry is on disk, with its id.
  using Done = std::function<void(Result<std::int64_t>)>;

  static Result<std::unique_ptr<AuditLog>> Open(sqlite::Database& database);

  /// `entry.id` is given here, and `entry.at` if it is 0.
  void Append(AuditEntry entry, Done done);

  /// Up to `limit` entries older than `before` (0: all), latest first.
  Result<std::vector<AuditEntry>> List(std::int64_t before, std::size_t limit);
  /// kNotFound if there is none.
  Result<AuditEntry> Get(std::int64_t id);
  /// The id of the latest entry of a target; 0: none.
  Result<std::int64_t> LatestOf(std::string_view target);

 private:
  explicit AuditLog(sqlite::Database& database) : database_(database) {}

  sqlite::Database& database_;
};

}  // namespace weir::server
