#include "notify/postgres/schema.h"

namespace weir::notify::postgres {
std::span<const char* const> Migrations() noexcept {
  static const char* const steps[] = {R"sql(
CREATE TABLE rate_limit_store(
  user_id text PRIMARY KEY,
  rate_limit int NOT NULL,
  time_window int NOT NULL,
  current_count int NOT NULL DEFAULT 0,
  last_refresh_time timestamp NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE notify_key(
  user_id text NOT NULL,
  key text NOT NULL,
  digest bigint NOT NULL,
  event_id text NOT NULL,
  rate_limit bigint NOT NULL,
  remaining bigint NOT NULL,
  resets_at bigint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (user_id, key)
);
CREATE INDEX notify_key_age ON notify_key(created_at);
CREATE FUNCTION weir_notify_time(p_micros bigint) RETURNS timestamp LANGUAGE sql IMMUTABLE AS
  $f$ SELECT timestamp 'epoch' + p_micros * interval '1 microsecond' $f$;
)sql",
                                      R"sql(
CREATE TABLE notify_message(
  event_id text PRIMARY KEY,
  user_id text NOT NULL,
  channel text NOT NULL,
  recipient text NOT NULL,
  state smallint NOT NULL,
  attempts int NOT NULL DEFAULT 0,
  last_error text NOT NULL DEFAULT '',
  accepted_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  not_before bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX notify_message_user ON notify_message(user_id, accepted_at, event_id);
CREATE INDEX notify_message_state ON notify_message(state, accepted_at, event_id);
CREATE TABLE notify_dead_letter(
  event_id text PRIMARY KEY,
  user_id text NOT NULL,
  event bytea NOT NULL,
  error text NOT NULL,
  attempts int NOT NULL,
  failed_at bigint NOT NULL,
  taken_until bigint NOT NULL DEFAULT 0
);
CREATE INDEX notify_dead_letter_user ON notify_dead_letter(user_id, failed_at, event_id);
CREATE INDEX notify_dead_letter_time ON notify_dead_letter(failed_at, event_id);
CREATE INDEX notify_dead_letter_taken ON notify_dead_letter(taken_until) WHERE taken_until > 0;
CREATE TABLE notify_delayed(
  event_id text PRIMARY KEY,
  event text NOT NULL,
  not_before bigint NOT NULL
);
CREATE INDEX notify_delayed_due ON notify_delayed(not_before, event_id);
CREATE TABLE notify_preference(
  user_id text PRIMARY KEY,
  quiet_from int NOT NULL,
  quiet_to int NOT NULL,
  zone text NOT NULL,
  opted_out text NOT NULL
);
CREATE INDEX rate_limit_store_channels ON rate_limit_store(split_part(user_id, E'\x1f', 1))
  WHERE strpos(user_id, E'\x1f') > 0;
)sql"};
  return steps;
}

const char* const kLockRows =
    "SELECT "
    "s.user_id, s.rate_limit, s.time_window, s.current_count, "
    "(extract(epoch FROM s.last_refresh_time) * 1000000)::bigint, pg_backend_pid() "
    "FROM rate_limit_store s WHERE s.user_id = ANY($1) ORDER BY s.user_id FOR UPDATE";

const char* const kReadRows =
    "SELECT "
    "s.user_id, s.rate_limit, s.time_window, s.current_count, "
    "(extract(epoch FROM s.last_refresh_time) * 1000000)::bigint, pg_backend_pid(), "
    "(SELECT count(*) FROM (SELECT FROM rate_limit_store c "
    "  WHERE split_part(c.user_id, E'\\x1f', 1) = s.user_id AND strpos(c.user_id, E'\\x1f') > 0 "
    "  LIMIT 1) x) "
    "FROM rate_limit_store s WHERE s.user_id = ANY($1)";

const char* const kWriteRows =
    "UPDATE rate_limit_store s SET current_count = u.n, last_refresh_time = weir_notify_time(u.t) "
    "FROM unnest($1::text[], $2::bigint[], $3::bigint[]) u(id, n, t) "
    "WHERE s.user_id = u.id AND pg_backend_pid() = $4";

// Rows are locked in order first, as path 1 does; an UPDATE alone takes them as they come.
const char* const kAddCounts =
    "WITH locked AS MATERIALIZED (SELECT s.user_id FROM rate_limit_store s "
    "  WHERE s.user_id = ANY($1) ORDER BY s.user_id FOR UPDATE) "
    "UPDATE rate_limit_store s SET current_count = s.current_count + u.n "
    "FROM unnest($1::text[], $2::bigint[], $3::bigint[]) u(id, n, t) JOIN locked l "
    "  ON l.user_id = u.id "
    "WHERE s.user_id = u.id AND s.last_refresh_time = weir_notify_time(u.t)";

const char* const kRefreshRows =
    "WITH locked AS MATERIALIZED (SELECT s.user_id FROM rate_limit_store s "
    "  WHERE s.user_id = ANY($1) ORDER BY s.user_id FOR UPDATE) "
    "UPDATE rate_limit_store s SET current_count = 0, last_refresh_time = weir_notify_time($3) "
    "FROM unnest($1::text[], $2::bigint[]) u(id, t) JOIN locked l ON l.user_id = u.id "
    "WHERE s.user_id = u.id AND s.last_refresh_time = weir_notify_time(u.t)";

const char* const kPutRow =
    "INSERT INTO rate_limit_store AS s(user_id, rate_limit, time_window, last_refresh_time) "
    "VALUES ($1, $2, $3, weir_notify_time($4)) ON CONFLICT (user_id) DO UPDATE "
    "SET rate_limit = excluded.rate_limit, time_window = excluded.time_window, current_count = 0, "
    "last_refresh_time = excluded.last_refresh_time RETURNING "
    "s.user_id, s.rate_limit, s.time_window, s.current_count, "
    "(extract(epoch FROM s.last_refresh_time) * 1000000)::bigint, pg_backend_pid() ";

const char* const kEnsureRow =
    "INSERT INTO rate_limit_store(user_id, rate_limit, time_window, last_refresh_time) "
    "VALUES ($1, $2, $3, weir_notify_time($4)) ON CONFLICT (user_id) DO NOTHING";

const char* const kRemoveRow =
    "DELETE FROM rate_limit_store s WHERE s.user_id = $1 RETURNING s.user_id";

const char* const kFindKeys =
    "SELECT k.user_id, k.key, k.digest, k.event_id, k.rate_limit, k.remaining, k.resets_at "
    "FROM unnest($1::text[], $2::text[]) u(id, key) "
    "JOIN notify_key k ON k.user_id = u.id AND k.key = u.key WHERE k.created_at > $3";

const char* const kPutKeys =
    "INSERT INTO notify_key SELECT u.*, $8 FROM unnest($1::text[], $2::text[], $3::bigint[], "
    "$4::text[], $5::bigint[], $6::bigint[], $7::bigint[]) u "
    "WHERE $9 IN (0, pg_backend_pid()) ORDER BY 1, 2 "
    "ON CONFLICT (user_id, key) DO UPDATE SET digest = excluded.digest, "
    "event_id = excluded.event_id, rate_limit = excluded.rate_limit, "
    "remaining = excluded.remaining, resets_at = excluded.resets_at, "
    "created_at = excluded.created_at";

// Sorted, as the sender's reports are: so neither waits for the other crosswise.
const char* const kPutMessages =
    "INSERT INTO notify_message(event_id, user_id, channel, recipient, state, accepted_at, "
    "updated_at) SELECT u.id, u.usr, u.channel, u.recipient, 0, u.at, u.at "
    "FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) "
    "u(id, usr, channel, recipient, at) WHERE $6 IN (0, pg_backend_pid()) ORDER BY 1 "
    "ON CONFLICT (event_id) DO NOTHING";

const char* const kSweepMessages =
    "DELETE FROM notify_message WHERE ctid IN (SELECT ctid FROM notify_message "
    "WHERE state IN (2, 4) AND accepted_at <= $1 LIMIT 20000 FOR UPDATE SKIP LOCKED)";

const char* const kSweepKeys =
    "DELETE FROM notify_key WHERE ctid IN (SELECT ctid FROM notify_key WHERE created_at <= $1 "
    "LIMIT 20000 FOR UPDATE SKIP LOCKED)";

// Plans that were made while the table was small must not scan it when it is large.
const char* const kBounds =
    "SELECT set_config('lock_timeout', $1, true), "
    "set_config('idle_in_transaction_session_timeout', $2, true), "
    "set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), "
    "set_config('enable_mergejoin', 'off', true)";

}  // namespace weir::notify::postgres
