#include "config/settings.h"

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

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// clang-format off
const Setting kSettings[] = {
    {{"listen.http", "--http", "HTTP address or port, or off (127.0.0.1:8080)"},
     [](Config& c, Texts t) { return SetAddress(c.listen.http, t); }},
    {{"listen.grpc", "--grpc", "gRPC address or port, or off (127.0.0.1:8081)"},
     [](Config& c, Texts t) { return SetAddress(c.listen.grpc, t); }},
    {{"listen.resp", "--resp", "Address or port of the Redis protocol, or off (127.0.0.1:6380)"},
     [](Config& c, Texts t) { return SetAddress(c.listen.resp, t); }},
    {{"data", "--data", "Folder for the SQLite file and snapshots (./weir-data)"},
     [](Config& c, Texts t) -> Status {
       if (t[0].empty()) return Expected("a folder", t[0]);
       c.data = t[0];
       return {};
     }},
    {{"store", "--store", "memory: (default), redis://, postgres://, mysql:// or weir://"},
     [](Config& c, Texts t) -> Status {
       c.store_given = true;
       c.store_name.clear();
       if (t[0].find(':') != std::string::npos) return SetStoreUrl(c.store, t[0]);
       c.store_name = t[0];
       return {};
     }},
    {{"store_timeout", "--store-timeout", "How long a check may wait for the store (100ms)"},
     [](Config& c, Texts t) -> Status {
       if (Status set = Set(c.distant.timeout, ReadTime(t[0], false)); !set.ok()) return set;
       // No client waits longer than this; a larger value is probably a wrong unit.
       return c.distant.timeout <= std::chrono::minutes(1) ? Status() : Status(Expected("at most 1m", t[0]));
     }},
    {{"store_connections", "", "Connections to the store; 0: chosen for the store"},
     [](Config& c, Texts t) { return Set(c.distant.connections, ReadWhole(t[0], 0, 1024)); }},
    {{"store_required", "--store-required", "true: start, and report ready, only if the store is up (false)"},
     [](Config& c, Texts t) { return Set(c.distant.required, ReadSwitch(t[0])); }},
    {{"store_migrate", "--store-migrate", "Create the tables of a SQL store; false: weir migrate does (true)"},
     [](Config& c, Texts t) { return Set(c.distant.migrate, ReadSwitch(t[0])); }},
    {{"store_breaker_failures", "", "Consecutive failures that open the circuit breaker"},
     [](Config& c, Texts t) { return Set(c.distant.breaker_failures, ReadWhole(t[0], 1, 1'000)); }},
    {{"store_deny_cache", "", "Maximum number of keys whose refusal is cached; 0: none"},
     [](Config& c, Texts t) { return Set(c.distant.deny_cache, ReadWhole(t[0], 0, 100'000'000)); }},
    {{"policies", "--policies", "Policy files or folders, reloaded when they change", true},
     [](Config& c, Texts t) -> Status { c.policies.assign(t.begin(), t.end()); return {}; }},
    {{"lenient", "--lenient", "Skip unknown fields of envoyproxy/ratelimit files"},
     [](Config& c, Texts t) { return Set(c.lenient, ReadSwitch(t[0])); }},
    {{"policy_store", "--policy-store", "Where the admin API stores policies: sqlite: or a URL (auto)"},
     [](Config& c, Texts t) -> Status {
       if (t[0] == "auto") { c.policy_store = t[0]; return {}; }
       return SetUrl(c.policy_store, t, {"sqlite:", "postgres://", "postgresql://", "mysql://", "mariadb://", "redis://", "rediss://",
                                       "redis+cluster://", "rediss+cluster://"});
     }},
    {{"admin.keys", "--admin-key", "Keys of the admin API, plain or as sha256:<hex>", true},
     [](Config& c, Texts t) {
       c.admin.short_keys = AnyShort(t);
       return SetKeys(c.admin.keys, t);
     }},
    {{"admin.allow", "", "Networks that may use the admin API (loopback)", true},
     [](Config& c, Texts t) { c.admin.allow_given = true; return SetNetworks(c.admin.allow, t); }},
    {{"admin.keyless", "", "Who may use the admin API while no key is set: local, allowed (admin.allow) or off"},
     [](Config& c, Texts t) -> Status {
       if (t[0] != "local" && t[0] != "allowed" && t[0] != "off") return Expected("local, allowed or off", t[0]);
       c.admin.keyless = t[0] != "off";
       c.admin.keyless_allowed = t[0] == "allowed";
       return {};
     }},
    {{"access.keys", "--access-key", "Keys with roles: name:role+role:key, sha256:<hex> or @file", true},
     [](Config& c, Texts t) { return SetAccessKeys(c.access.keys, t); }},
    {{"access.subjects", "", "Roles of client certificates by common name, each role+role:name", true},
     [](Config& c, Texts t) { return SetRolesOf(c.access.subjects, t); }},
    {{"access.open", "--access-open", "Operations that need no key, or none (check)", true},
     [](Config& c, Texts t) { return SetOpen(c.access.open, t); }},
    {{"oidc.issuer", "", "The issuer whose bearer tokens are accepted; empty: none"},
     [](Config& c, Texts t) -> Status { c.oidc.issuer = t[0]; return {}; }},
    {{"oidc.audience", "", "The audience that tokens must have"},
     [](Config& c, Texts t) -> Status { c.oidc.audience = t[0]; return {}; }},
    {{"oidc.jwks", "", "The issuer's public keys: a file or an https:// URL"},
     [](Config& c, Texts t) -> Status { c.oidc.jwks = t[0]; return {}; }},
    {{"oidc.jwks_ca", "", "PEM file with the CA certificates to trust at that URL; empty: the system's"},
     [](Config& c, Texts t) -> Status { c.oidc.jwks_ca = t[0]; return {}; }},
    {{"oidc.claim", "", "The claim of a token that grants roles"},
     [](Config& c, Texts t) -> Status {
       if (t[0].empty()) return Expected("the name of a claim", t[0]);
       c.oidc.claim = t[0];
       return {};
     }},
    {{"oidc.roles", "", "Roles by value of the claim, each role+role:value", true},
     [](Config& c, Texts t) { return SetRolesOf(c.oidc.roles, t); }},
    {{"audit.keep", "", "Maximum number of audit log entries to keep; 0: all"},
     [](Config& c, Texts t) { return Set(c.audit.keep, ReadWhole(t[0], 0, 1'000'000'000)); }},
    {{"audit.age", "", "How long audit log entries are kept; off: forever"},
     [](Config& c, Texts t) { return Set(c.audit.age, ReadTime(t[0], true)); }},
    {{"resp.keys", "--resp-key", "Keys for AUTH, plain or as sha256:<hex>; none: no AUTH", true},
     [](Config& c, Texts t) { return SetKeys(c.resp.keys, t); }},
    {{"grpc.max_streams", "", "Maximum number of open calls per gRPC connection"},
     [](Config& c, Texts t) { return Set(c.grpc.max_streams, ReadWhole(t[0], 1, 1'000'000)); }},
    {{"grpc.idle_timeout", "", "How long a gRPC connection may be idle"},
     [](Config& c, Texts t) { return Set(c.grpc.idle_timeout, ReadTime(t[0], false)); }},
    {{"resp.idle_timeout", "", "How long a Redis connection may be idle"},
     [](Config& c, Texts t) { return Set(c.resp.idle_timeout, ReadTime(t[0], false)); }},
    {{"grpc.max_message", "", "Maximum size of a gRPC message"},
     [](Config& c, Texts t) { return Set(c.grpc.max_message, ReadBytes(t[0], 1024, kGiB)); }},
    {{"grpc.response_headers", "", "Envoy's rate limit service: return response headers to add"},
     [](Config& c, Texts t) { return Set(c.grpc.response_headers, ReadSwitch(t[0])); }},
    {{"grpc.limit_header", "", "The response header for the limit"},
     [](Config& c, Texts t) { return SetFieldName(c.grpc.limit_header, t[0]); }},
    {{"grpc.remaining_header", "", "The response header for the remaining permits"},
     [](Config& c, Texts t) { return SetFieldName(c.grpc.remaining_header, t[0]); }},
    {{"grpc.reset_header", "", "The response header for the seconds until the window ends"},
     [](Config& c, Texts t) { return SetFieldName(c.grpc.reset_header, t[0]); }},
    {{"grpc.dynamic_metadata", "", "Envoy's rate limit service: return dynamic_metadata"},
     [](Config& c, Texts t) { return Set(c.grpc.dynamic_metadata, ReadSwitch(t[0])); }},
    {{"auth.user_header", "", "The header with the user, for GET /v1/auth"},
     [](Config& c, Texts t) { return SetFieldName(c.auth.user_header, t[0]); }},
    {{"auth.api_key_header", "", "The header with the API key, for GET /v1/auth"},
     [](Config& c, Texts t) { return SetFieldName(c.auth.api_key_header, t[0]); }},
    {{"headers.x_ratelimit", "", "Send X-RateLimit-Limit, -Remaining and -Reset"},
     [](Config& c, Texts t) { return Set(c.headers.x_ratelimit, ReadSwitch(t[0])); }},
    {{"headers.ietf", "", "Send the IETF headers RateLimit and RateLimit-Policy"},
     [](Config& c, Texts t) { return Set(c.headers.ietf, ReadSwitch(t[0])); }},
    {{"snapshot.interval", "", "How often the memory store is saved; off: only at shutdown"},
     [](Config& c, Texts t) { return Set(c.snapshot.interval, ReadTime(t[0], true)); }},
    {{"journal", "--journal", "Journal of the memory store: off, async or sync (async)"},
     [](Config& c, Texts t) { return Set(c.journal, ReadChoice(t[0], {"off", "async", "sync"})); }},
    {{"cleanup.interval", "", "How often the memory store frees keys that are back at their full quota; off: never"},
     [](Config& c, Texts t) { return Set(c.cleanup.interval, ReadTime(t[0], true)); }},
    {{"log.format", "--log-format", "console or json (console)"},
     [](Config& c, Texts t) { return Set(c.log.format, ReadChoice(t[0], {"console", "json"})); }},
    {{"log.level", "--log-level", "debug, info, warn, error or off (info)"},
     [](Config& c, Texts t) { return Set(c.log.level, ReadChoice(t[0], {"debug", "info", "warn", "error", "off"})); }},
    {{"trusted_proxies", "", "Networks whose X-Forwarded-For is trusted", true},
     [](Config& c, Texts t) { return SetNetworks(c.trusted_proxies, t); }},
    {{"ipv6_prefix", "", "IPv6 prefix length that identifies a client"},
     [](Config& c, Texts t) { return Set(c.ipv6_prefix, ReadWhole(t[0], 1, 128)); }},
    {{"max_keys", "", "Maximum number of keys in the memory store"},
     [](Config& c, Texts t) { return Set(c.max_keys, ReadWhole(t[0], 1, 1'000'000'000)); }},
    {{"local_share", "", "Share of a quota that each node grants with on_store_error: local"}, SetLocalShare},
    {{"unmatched", "--unmatched", "Requests that no policy applies to: allow or deny (allow)"},
     [](Config& c, Texts t) { return Set(c.deny_unmatched, ReadChoice(t[0], {"allow", "deny"})); }},
    {{"tls.cert", "--tls-cert", "PEM file with the certificate chain; turns on TLS"},
     [](Config& c, Texts t) -> Status { c.tls.cert = t[0]; return {}; }},
    {{"tls.key", "--tls-key", "PEM file with the private key"},
     [](Config& c, Texts t) -> Status { c.tls.key = t[0]; return {}; }},
    {{"tls.client_ca", "", "PEM file with the CA certificates that client certificates must be signed by"},
     [](Config& c, Texts t) -> Status { c.tls.client_ca = t[0]; return {}; }},
    {{"limits.max_body", "", "Maximum size of a batch of slots; other bodies: 512k at most"},
     [](Config& c, Texts t) { return Set(c.limits.max_body, ReadBytes(t[0], 1024, kGiB)); }},
    {{"limits.max_header", "", "Maximum size of a request header"},
     [](Config& c, Texts t) { return Set(c.limits.max_header, ReadBytes(t[0], 1024, 1 << 20)); }},
    {{"limits.max_connections", "", "Maximum number of connections, all protocols together"},
     [](Config& c, Texts t) { return Set(c.limits.max_connections, ReadWhole(t[0], 1, 10'000'000)); }},
    {{"limits.max_connections_per_address", "", "Maximum number of connections of one address (half of max_connections)"},
     [](Config& c, Texts t) { return Set(c.limits.max_connections_per_address, ReadWhole(t[0], 1, 10'000'000)); }},
    {{"limits.idle_timeout", "", "How long a connection may be idle between requests"},
     [](Config& c, Texts t) { return Set(c.limits.idle_timeout, ReadTime(t[0], false)); }},
    {{"limits.request_timeout", "", "How long a request may take to arrive"},
     [](Config& c, Texts t) { return Set(c.limits.request_timeout, ReadTime(t[0], false)); }},
    {{"limits.handshake_timeout", "", "How long the TLS handshake, the HTTP/2 preface and AUTH may take"},
     [](Config& c, Texts t) { return Set(c.limits.handshake_timeout, ReadTime(t[0], false)); }},
    {{"limits.write_timeout", "", "How long a client may leave its responses unread"},
     [](Config& c, Texts t) { return Set(c.limits.write_timeout, ReadTime(t[0], false)); }},
    {{"limits.drain_timeout", "", "How long a shutdown waits for requests in progress"},
     [](Config& c, Texts t) { return Set(c.limits.drain_timeout, ReadTime(t[0], false)); }},
    {{"threads", "--threads", "Threads; 0: one per core (0)"},
     [](Config& c, Texts t) { return Set(c.threads, ReadWhole(t[0], 0, 1024)); }},
};
// clang-format on

}  // namespace

std::span<const Setting> ServiceSettings() { return kSettings; }

}  // namespace weir::config
