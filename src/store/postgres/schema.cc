#include "store/postgres/schema.h"

#include "drivers/postgres/migration.h"

namespace weir::store::postgres {
namespace {

// No index but the key's: an update then stays in its page (HOT), which the fill factor leaves room
// for. States are small and change with every charge, so they are neither compressed nor moved out
// while they fit.
constexpr const char* kSteps[] = {R"(
CREATE TABLE weir_limits(
  key      bytea  NOT NULL PRIMARY KEY,
  state    bytea  NOT NULL DEFAULT '',
  fresh_at bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE weir_limits ALTER COLUMN state SET STORAGE EXTERNAL;
COMMENT ON TABLE weir_limits IS 'Weir: one row per limited key';
COMMENT ON COLUMN weir_limits.fresh_at IS
  'nanoseconds since 1970; from then on the row may be deleted without changing an answer';
)"};

}  // namespace

// An empty row need not survive a crash, so its commit does not wait for the disk. It stays for 10
// seconds from $2 (null: now), so that nobody sweeps it before the transaction that it is for.
const char* const kCreateRows = R"(
INSERT INTO weir_limits(key, fresh_at)
SELECT k, coalesce($2::bigint, (extract(epoch FROM now()) * 1000000)::bigint * 1000) + 10000000000
FROM (SELECT set_config('synchronous_commit', 'off', true)) AS quick,
              unnest($1::bytea[]) AS k
ON CONFLICT DO NOTHING)";

// Locked in order of the key. The time is read as each row comes, so the latest is later than the
// moment when the last lock was had. It comes once more at the end, should there be no rows.
const char* const kLockRows = R"(
WITH locked AS MATERIALIZED (
  SELECT key, state FROM weir_limits WHERE key = ANY($1::bytea[]) ORDER BY key FOR UPDATE)
SELECT key, state, clock_timestamp() FROM locked
UNION ALL SELECT NULL, NULL, clock_timestamp())";

const char* const kWriteRows = R"(
UPDATE weir_limits AS l SET state = w.state, fresh_at = w.fresh_at
FROM unnest($1::bytea[], $2::bytea[], $3::bigint[]) AS w(key, state, fresh_at)
WHERE l.key = w.key)";

// $1: where to go on, $2: how many rows to look at, $3: the time (null: the server's), less a
// grace. Rows in use are left for the next round. Answers the last key looked at, and how many
// went.
const char* const kSweepRows = R"(
WITH looked AS MATERIALIZED (
  SELECT key FROM weir_limits WHERE key > $1::bytea ORDER BY key LIMIT $2::bigint),
stale AS MATERIALIZED (
  SELECT l.key FROM weir_limits AS l JOIN looked USING (key)
  WHERE l.fresh_at <= coalesce($3::bigint,
                               (extract(epoch FROM now()) * 1000000)::bigint * 1000 - $4::bigint)
  ORDER BY l.key FOR UPDATE OF l SKIP LOCKED),
gone AS (DELETE FROM weir_limits AS l USING stale WHERE l.key = stale.key RETURNING 1)
SELECT (SELECT key FROM looked ORDER BY key DESC LIMIT 1), (SELECT count(*) FROM looked),
       (SELECT count(*) FROM gone))";

Status Migrate(const std::string& url) { return weir::postgres::Migrate(url, "limits", kSteps); }

}  // namespace weir::store::postgres
