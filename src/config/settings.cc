#include "config/settings.h"

#include <algorithm>
#include <array>

#include "base/number.h"
#include "config/key_settings.h"
#include "config/values.h"

namespace weir::config {

namespace {

Status SetNetworks(std::vector<IpNetwork>& target, Texts texts) {
  Result<std::vector<IpNetwork>> networks = ParseNetworks(texts);
  if (!networks.ok()) return networks.error();
  target = std::move(*networks);
  return {};
}

Status SetLocalShare(Config& config, Texts texts) {
  const auto value = ParseFraction(texts[0]);
  if (!value || !(*value >= 0.0001 && *value <= 1)) {
    return Expected("a number from 0.0001 to 1", texts[0]);
  }
  config.local_share = *value;
  return {};
}

Status SetLogFormat(Config& config, Texts texts) {
  if (texts[0] == "console") {
    config.log.format = LogFormat::kConsole;
  } else if (texts[0] == "json") {
    config.log.format = LogFormat::kJson;
  } else {
    return Expected("console or json", texts[0]);
  }
  return {};
}

Status SetJournal(Config& config, Texts texts) {
  if (texts[0] == "off") {
    config.journal = Journal::kOff;
  } else if (texts[0] == "async") {
    config.journal = Journal::kAsync;
  } else if (texts[0] == "sync") {
    config.journal = Journal::kSync;
  } else {
    return Expected("off, async or sync", texts[0]);
  }
  return {};
}

Status SetLogLevel(Config& config, Texts texts) {
  constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warn", "error", "off"};
  const auto found = std::find(kNames.begin(), kNames.end(), texts[0]);
  if (found == kNames.end()) return Expected("debug, info, warn, error or off", texts[0]);
  config.log.level = static_cast<LogLevel>(found - kNames.begin());
  return {};
}

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// clang-format off
const Setting kSettings[] = {
    {{"listen.http", "--http", "address to serve HTTP on, or off"},
     [](Config& c, Texts t) { return SetAddress(c.listen.http, t); }},
    {{"listen.grpc", "--grpc", "address to serve gRPC on, or off"},
     [](Config& c, Texts t) { return SetAddress(c.listen.grpc, t); }},
    {{"listen.resp", "--resp", "address to serve the Redis protocol on, or off"},
     [](Config& c, Texts t) { return SetAddress(c.listen.resp, t); }},
    {{"data", "--data", "folder for the SQLite file and snapshots"},
     [](Config& c, Texts t) -> Status {
       if (t[0].empty()) return Expected("a folder", t[0]);
       c.data = t[0];
       return {};
     }},
    {{"store", "--store", "memory:, redis[+cluster]://, postgres://, mysql://, or a name"},
     [](Config& c, Texts t) -> Status {
       c.store_given = true;
       c.store_name.clear();
       if (t[0].find(':') != std::string::npos) return SetStoreUrl(c.store, t[0]);
       c.store_name = t[0];
       return {};
     }},
    {{"store_timeout", "--store-timeout", "how long a check may wait for the store"},
     [](Config& c, Texts t) -> Status {
       if (Status set = Set(c.distant.timeout, ReadTime(t[0], false)); !set.ok()) return set;
       // Whoever waits longer than this has gone; a mistyped unit has not.
       return c.distant.timeout <= std::chrono::minutes(1) ? Status() : Status(Expected("at most 1m", t[0]));
     }},
    {{"store_connections", "", "connections to the store; 0: as many as suit it"},
     [](Config& c, Texts t) { return Set(c.distant.connections, ReadWhole(t[0], 0, 1024)); }},
    {{"store_required", "--store-required", "true: start, and be ready, only with the store"},
     [](Config& c, Texts t) { return Set(c.distant.required, ReadSwitch(t[0])); }},
    {{"store_migrate", "--store-migrate", "create the tables of a SQL store; false: weir migrate does"},
     [](Config& c, Texts t) { return Set(c.distant.migrate, ReadSwitch(t[0])); }},
    {{"store_breaker_failures", "", "failures in a row after which the store is left alone until it answers a probe"},
     [](Config& c, Texts t) { return Set(c.distant.breaker_failures, ReadWhole(t[0], 1, 1'000)); }},
    {{"store_deny_cache", "", "the most keys whose refusal is remembered; 0: none"},
     [](Config& c, Texts t) { return Set(c.distant.deny_cache, ReadWhole(t[0], 0, 100'000'000)); }},
    {{"policies", "--policies", "policy files, or folders of them, reloaded when they change", true},
     [](Config& c, Texts t) -> Status { c.policies.assign(t.begin(), t.end()); return {}; }},
    {{"lenient", "--lenient", "skip unknown fields of envoyproxy/ratelimit's files"},
     [](Config& c, Texts t) { return Set(c.lenient, ReadSwitch(t[0])); }},
    {{"policy_store", "--policy-store", "where the admin API keeps policies: auto, sqlite:, or a URL"},
     [](Config& c, Texts t) -> Status {
       if (t[0] == "auto") { c.policy_store = t[0]; return {}; }
       return SetUrl(c.policy_store, t, {"sqlite:", "postgres://", "postgresql://", "mysql://", "mariadb://", "redis://", "rediss://",
                                       "redis+cluster://", "rediss+cluster://"});
     }},
    {{"admin.keys", "--admin-key", "keys of the admin API, as they are or as sha256:<hex>", true},
     [](Config& c, Texts t) {
       c.admin.short_keys = AnyShort(t);
       return SetKeys(c.admin.keys, t);
     }},
    {{"admin.allow", "", "networks that may use the admin API; loopback unless given", true},
     [](Config& c, Texts t) { c.admin.allow_given = true; return SetNetworks(c.admin.allow, t); }},
    {{"admin.keyless", "", "without keys: local opens the admin API to this machine, allowed to admin.allow, off closes it"},
     [](Config& c, Texts t) -> Status {
       if (t[0] != "local" && t[0] != "allowed" && t[0] != "off") return Expected("local, allowed or off", t[0]);
       c.admin.keyless = t[0] != "off";
       c.admin.keyless_allowed = t[0] == "allowed";
       return {};
     }},
    {{"access.keys", "--access-key", "keys with roles: name:role+role:key, sha256:<hex> or @file", true},
     [](Config& c, Texts t) { return SetAccessKeys(c.access.keys, t); }},
    {{"access.subjects", "", "roles of client certificates by their common name, each role+role:name", true},
     [](Config& c, Texts t) { return SetRolesOf(c.access.subjects, t); }},
    {{"access.open", "--access-open", "operations that need no key: check, slots, …, or none", true},
     [](Config& c, Texts t) { return SetOpen(c.access.open, t); }},
    {{"oidc.issuer", "", "the issuer whose bearer tokens are accepted; empty: none"},
     [](Config& c, Texts t) -> Status { c.oidc.issuer = t[0]; return {}; }},
    {{"oidc.audience", "", "the audience that a token must be for"},
     [](Config& c, Texts t) -> Status { c.oidc.audience = t[0]; return {}; }},
    {{"oidc.jwks", "", "the issuer's public keys: a file, or an https:// URL"},
     [](Config& c, Texts t) -> Status { c.oidc.jwks = t[0]; return {}; }},
    {{"oidc.jwks_ca", "", "PEM file of the authorities to trust at that URL; empty: the system's"},
     [](Config& c, Texts t) -> Status { c.oidc.jwks_ca = t[0]; return {}; }},
    {{"oidc.claim", "", "the claim of a token whose texts give it roles"},
     [](Config& c, Texts t) -> Status {
       if (t[0].empty()) return Expected("the name of a claim", t[0]);
       c.oidc.claim = t[0];
       return {};
     }},
    {{"oidc.roles", "", "roles by a text of the claim, each role+role:text", true},
     [](Config& c, Texts t) { return SetRolesOf(c.oidc.roles, t); }},
    {{"audit.keep", "", "the most entries of the audit log that are kept; 0: all"},
     [](Config& c, Texts t) { return Set(c.audit.keep, ReadWhole(t[0], 0, 1'000'000'000)); }},
    {{"audit.age", "", "how long entries of the audit log are kept; off: forever"},
     [](Config& c, Texts t) { return Set(c.audit.age, ReadTime(t[0], true)); }},
    {{"resp.keys", "--resp-key", "keys for AUTH, as they are or as sha256:<hex>; none: no AUTH", true},
     [](Config& c, Texts t) { return SetKeys(c.resp.keys, t); }},
    {{"grpc.max_streams", "", "calls that one gRPC connection may have open at once"},
     [](Config& c, Texts t) { return Set(c.grpc.max_streams, ReadWhole(t[0], 1, 1'000'000)); }},
    {{"grpc.idle_timeout", "", "how long a gRPC connection may be without calls"},
     [](Config& c, Texts t) { return Set(c.grpc.idle_timeout, ReadTime(t[0], false)); }},
    {{"resp.idle_timeout", "", "how long a Redis connection may be without commands"},
     [](Config& c, Texts t) { return Set(c.resp.idle_timeout, ReadTime(t[0], false)); }},
    {{"grpc.max_message", "", "the largest gRPC message"},
     [](Config& c, Texts t) { return Set(c.grpc.max_message, ReadBytes(t[0], 1024, kGiB)); }},
    {{"grpc.response_headers", "", "Envoy's rate limit service: name response headers to add"},
     [](Config& c, Texts t) { return Set(c.grpc.response_headers, ReadSwitch(t[0])); }},
    {{"grpc.limit_header", "", "the response header for the limit"},
     [](Config& c, Texts t) { return SetFieldName(c.grpc.limit_header, t[0]); }},
    {{"grpc.remaining_header", "", "the response header for what is left of it"},
     [](Config& c, Texts t) { return SetFieldName(c.grpc.remaining_header, t[0]); }},
    {{"grpc.reset_header", "", "the response header for the seconds until the window ends"},
     [](Config& c, Texts t) { return SetFieldName(c.grpc.reset_header, t[0]); }},
    {{"grpc.dynamic_metadata", "", "Envoy's rate limit service: fill dynamic_metadata in answers"},
     [](Config& c, Texts t) { return Set(c.grpc.dynamic_metadata, ReadSwitch(t[0])); }},
    {{"auth.user_header", "", "the header field with the user, for GET /v1/auth"},
     [](Config& c, Texts t) { return SetFieldName(c.auth.user_header, t[0]); }},
    {{"auth.api_key_header", "", "the header field with the API key, for GET /v1/auth"},
     [](Config& c, Texts t) { return SetFieldName(c.auth.api_key_header, t[0]); }},
    {{"headers.x_ratelimit", "", "send X-RateLimit-Limit, -Remaining and -Reset"},
     [](Config& c, Texts t) { return Set(c.headers.x_ratelimit, ReadSwitch(t[0])); }},
    {{"headers.ietf", "", "send the IETF fields RateLimit and RateLimit-Policy"},
     [](Config& c, Texts t) { return Set(c.headers.ietf, ReadSwitch(t[0])); }},
    {{"snapshot.interval", "", "how often the memory store is saved; off: only at shutdown"},
     [](Config& c, Texts t) { return Set(c.snapshot.interval, ReadTime(t[0], true)); }},
    {{"journal", "--journal", "what a crash may lose of the memory store: off, async or sync"},
     SetJournal},
    {{"cleanup.interval", "", "how often the memory store frees keys that have nothing left to remember; off: never"},
     [](Config& c, Texts t) { return Set(c.cleanup.interval, ReadTime(t[0], true)); }},
    {{"log.format", "--log-format", "console or json"}, SetLogFormat},
    {{"log.level", "--log-level", "debug, info, warn, error or off"}, SetLogLevel},
    {{"trusted_proxies", "", "networks whose X-Forwarded-For is trusted", true},
     [](Config& c, Texts t) { return SetNetworks(c.trusted_proxies, t); }},
    {{"ipv6_prefix", "", "IPv6 clients are told apart by this many bits"},
     [](Config& c, Texts t) { return Set(c.ipv6_prefix, ReadWhole(t[0], 1, 128)); }},
    {{"max_keys", "", "the most keys the memory store holds"},
     [](Config& c, Texts t) { return Set(c.max_keys, ReadWhole(t[0], 1, 1'000'000'000)); }},
    {{"local_share", "", "part of a quota that on_store_error: local grants by itself"}, SetLocalShare},
    {{"tls.cert", "--tls-cert", "PEM file with the certificate chain; turns TLS on"},
     [](Config& c, Texts t) -> Status { c.tls.cert = t[0]; return {}; }},
    {{"tls.key", "--tls-key", "PEM file with the private key"},
     [](Config& c, Texts t) -> Status { c.tls.key = t[0]; return {}; }},
    {{"tls.client_ca", "", "PEM file with the authority that clients' certificates must come from"},
     [](Config& c, Texts t) -> Status { c.tls.client_ca = t[0]; return {}; }},
    {{"limits.max_body", "", "the largest request body"},
     [](Config& c, Texts t) { return Set(c.limits.max_body, ReadBytes(t[0], 1024, kGiB)); }},
    {{"limits.max_header", "", "the largest request header"},
     [](Config& c, Texts t) { return Set(c.limits.max_header, ReadBytes(t[0], 1024, 1 << 20)); }},
    {{"limits.max_connections", "", "connections of all protocols together"},
     [](Config& c, Texts t) { return Set(c.limits.max_connections, ReadWhole(t[0], 1, 10'000'000)); }},
    {{"limits.idle_timeout", "", "how long a connection may be idle between requests"},
     [](Config& c, Texts t) { return Set(c.limits.idle_timeout, ReadTime(t[0], false)); }},
    {{"limits.request_timeout", "", "how long a request may take to arrive"},
     [](Config& c, Texts t) { return Set(c.limits.request_timeout, ReadTime(t[0], false)); }},
    {{"limits.handshake_timeout", "", "how long TLS, HTTP/2's greeting and AUTH may take"},
     [](Config& c, Texts t) { return Set(c.limits.handshake_timeout, ReadTime(t[0], false)); }},
    {{"limits.write_timeout", "", "how long a client may read nothing of its answers"},
     [](Config& c, Texts t) { return Set(c.limits.write_timeout, ReadTime(t[0], false)); }},
    {{"limits.drain_timeout", "", "how long a shutdown waits for requests that are under way"},
     [](Config& c, Texts t) { return Set(c.limits.drain_timeout, ReadTime(t[0], false)); }},
    {{"threads", "--threads", "reactors; 0: one per core"},
     [](Config& c, Texts t) { return Set(c.threads, ReadWhole(t[0], 0, 1024)); }},
};
// clang-format on

}  // namespace

std::span<const Setting> ServiceSettings() { return kSettings; }

}  // namespace weir::config
