#pragma once

// The configuration of the service. Every value has a default; a YAML file, the environment
// (WEIR_LISTEN_HTTP for listen.http) and flags override them, in this order.
// docs/reference/configuration.md lists all settings.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip.h"
#include "config/roles.h"
#include "drivers/digest/sha256.h"
#include "policy/definition.h"
#include "policy/yaml.h"

namespace weir::config {

using weir::Digest;
using weir::EqualDigests;
using weir::Sha256;

/// Where a protocol listens. A plain value.
struct Address {
  bool off = false;
  std::string host = {};  ///< an IP address
  std::uint16_t port = 0;

  /// Accepts `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, `8080` (127.0.0.1), `:8080` (every
  /// IPv4 address) and `off`.
  static std::optional<Address> Parse(std::string_view text);
  std::string ToString() const;
  bool loopback() const;

  friend bool operator==(const Address&, const Address&) = default;
};

enum class Journal : std::uint8_t { kOff, kAsync, kSync };
enum class LogFormat : std::uint8_t { kConsole, kJson };
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarn, kError, kOff };
/// Which header fields give GET /v1/auth the path and method of the proxied request.
enum class AuthTarget : std::uint8_t { kAuto, kOriginal, kForwarded, kNone };

struct Config {
  struct Listen {
    Address http{false, "127.0.0.1", 8080};
    Address grpc{false, "127.0.0.1", 8081};
    Address resp{false, "127.0.0.1", 6380};

    bool all_off() const noexcept { return http.off && grpc.off && resp.off; }
  } listen;
  std::string data = "./weir-data";
  std::string store = "memory:";  ///< secret: may hold a password
  bool store_given = false;
  /// With `stores`: the name of the default one. `store` is then its first URL.
  std::string store_name = {};
  struct NamedStore {
    std::string name = {};
    std::vector<std::string> urls = {};  ///< secret; several: shards, which divide its keys
  };
  std::vector<NamedStore> stores;  ///< empty: there is only `store`
  /// Moves keys from one of them to another: docs/guide/several-stores.md.
  struct Move {
    std::string from = {};  ///< empty: no move
    std::string to = {};
    std::uint32_t share = 0;  ///< of 10,000 keys, how many are charged in both
    std::uint32_t done = 0;   ///< and how many are charged only in `to`
    std::vector<std::string> policies = {};
  } move;
  struct DistantStore {  ///< for stores other than memory:
    std::chrono::milliseconds timeout{100};
    std::size_t connections = 0;  ///< 0: chosen for the store
    bool required = false;
    bool migrate = true;  ///< SQL stores: create or update the tables at startup
    std::uint32_t breaker_failures = 5;
    std::size_t deny_cache = 65'536;  ///< keys; 0: none
  } distant;
  struct Region {
    std::chrono::milliseconds term{
        0};              ///< how long stores of regions keep permits; 0: there are none
    bool lends = false;  ///< this service is the store of a region
  } region;
  std::vector<std::string> policies;
  bool lenient = false;               ///< skip unknown fields in Envoy's files
  std::string policy_store = "auto";  ///< of the admin API's policies; secret: may hold a password
  struct Xds {
    std::string server = {};  ///< grpc:// or grpcs://; empty: no control plane
    std::string node_id = "weir";
    std::vector<std::string> headers = {};  ///< secret
    std::string tls_ca = {};                ///< empty: the system's CAs
    std::string tls_cert = {};
    std::string tls_key = {};
  } xds;
  struct Admin {
    std::vector<Digest> keys;  ///< never the keys themselves
    std::vector<IpNetwork> allow;
    bool allow_given = false;      ///< if not: loopback
    bool keyless = true;           ///< without keys, open to this machine
    bool keyless_allowed = false;  ///< and to `allow`, wherever those addresses are
    bool short_keys = false;       ///< a key has fewer than 16 characters
  } admin;
  struct Access {
    struct Key {
      std::string name;
      Digest digest{};
      access::Roles roles = access::kNoRoles;
    };
    std::vector<Key> keys = {};
    struct Subject {
      std::string name;  ///< the common name in a client's certificate
      access::Roles roles = access::kNoRoles;
    };
    std::vector<Subject> subjects = {};
    /// Operations allowed without a key even if keys are configured.
    std::vector<access::Operation> open = {access::Operation::kCheck};
  } access;
  struct Oidc {
    std::string issuer;
    std::string audience;
    std::string jwks;             ///< a file, or an https:// URL
    std::string jwks_ca;          ///< CAs to trust for the URL; empty: the system's
    std::string claim = "roles";  ///< its values are looked up in `roles`
    struct Mapping {
      std::string value;
      access::Roles roles = access::kNoRoles;
    };
    std::vector<Mapping> roles;
    bool enabled() const noexcept { return !issuer.empty(); }
  } oidc;
  struct Audit {
    std::size_t keep = 100'000;                                  ///< entries; 0: all
    std::chrono::milliseconds age{std::chrono::hours(24) * 90};  ///< zero: any age
  } audit;
  struct Resp {
    std::vector<Digest>
        keys;  ///< any of them opens a Redis client's connection; none: all are open
    std::chrono::milliseconds idle_timeout{3'600'000};
  } resp;
  struct Grpc {
    std::uint32_t max_streams = 16'384;  ///< concurrent ones per connection
    std::size_t max_message = std::size_t{512} << 10;
    std::chrono::milliseconds idle_timeout{600'000};
    bool response_headers = false;  ///< the rate limit service returns the three below
    std::string limit_header = "RateLimit-Limit";
    std::string remaining_header = "RateLimit-Remaining";
    std::string reset_header = "RateLimit-Reset";
    bool dynamic_metadata = false;
  } grpc;
  struct Auth {
    std::string user_header = "X-User-Id";
    std::string api_key_header = "X-API-Key";
    AuthTarget target = AuthTarget::kAuto;
  } auth;  ///< which header fields of a request GET /v1/auth reads
  struct Proxy {
    std::string listen = "127.0.0.1:8000";
    std::string admin = "off";
    std::vector<std::string> upstreams;
    std::string upstream_tls_ca;  ///< empty: the system's CAs
    std::string upstream_tls_cert;
    std::string upstream_tls_key;
    bool upstream_tls_verify = true;
    std::string per_ip;  ///< "100/60m"; empty: only the default
    std::string domain;  ///< of the policies; empty: the only one they use
    std::string api_key_header = "X-API-Key";
    std::string user_header;  ///< empty: no entry `user`
    std::vector<std::string> upgrades = {"websocket"};
    bool websocket_messages = false;  ///< each counts as a request
    std::chrono::milliseconds idle_timeout{75'000};
    std::chrono::milliseconds header_timeout{10'000};
    std::chrono::milliseconds connect_timeout{5'000};
    std::chrono::milliseconds stall_timeout{60'000};
    std::chrono::milliseconds tunnel_timeout{3'600'000};
    std::chrono::milliseconds release_timeout{1'000};
  } proxy;
  struct Slots {
    std::string store = "sqlite:";
    std::chrono::milliseconds keep{0};      ///< finished events, in the live tables; 0: forever
    std::chrono::milliseconds keep_ids{0};  ///< their IDs, in the archive; 0: forever
  } slots;
  struct Notify {
    std::string store = "sqlite:";
    std::string cache;
    std::string broker = "embedded:";
    std::vector<std::string> providers;  ///< embedded: [CHANNEL=]URL; secret: may hold passwords
    std::string token;                   ///< secret; for webhooks
    int attempts = 5;                    ///< embedded: before a message becomes a dead letter
    /// For users without a configuration; 0: such users are refused.
    std::int64_t default_limit = 0;
    std::int64_t default_window = 0;  ///< minutes
  } notify;
  struct Headers {
    bool x_ratelimit = true;
    bool ietf = true;
  } headers;
  struct Snapshot {
    std::chrono::milliseconds interval{5000};  ///< zero: only at shutdown
  } snapshot;
  struct Cleanup {
    std::chrono::milliseconds interval{3'600'000};  ///< zero: never
  } cleanup;  ///< of keys in the memory store whose state no longer matters
  /// Whether the memory store logs its changes between snapshots.
  Journal journal = Journal::kAsync;
  struct Log {
    LogFormat format = LogFormat::kConsole;
    LogLevel level = LogLevel::kInfo;
    std::uint32_t refusals = 10;  ///< lines per second and reactor; 0: none
    bool hashed_keys = false;
    std::string key_salt = {};  ///< secret
  } log;
  struct Metrics {
    bool tokens_remaining = false;
  } metrics;
  struct Traces {
    std::string endpoint = {};  ///< empty: no tracing
    double ratio = 0.01;
    std::vector<std::string> headers = {};  ///< secret
    std::string service_name = "weir";
    std::uint32_t max_per_second = 1'000;
    std::size_t queue = 2'048;
    std::size_t batch = 512;
    std::chrono::milliseconds interval{1'000};
    std::chrono::milliseconds timeout{10'000};
  } traces;
  std::vector<IpNetwork> trusted_proxies;
  int ipv6_prefix = 64;
  policy::Definition default_policy;
  bool default_policy_written = false;  ///< false: the built-in one
  std::size_t max_keys = 1'000'000;
  double local_share = 0.1;
  bool deny_unmatched = false;  ///< refuse requests that no policy applies to
  /// Whether the default policy applies to requests that no other one applies to (GET /v1/auth). It
  /// always applies to bare keys.
  bool default_for_requests() const noexcept { return default_policy_written || !deny_unmatched; }
  struct Tls {
    std::string cert;
    std::string key;
    std::string client_ca;
    bool enabled() const noexcept { return !cert.empty(); }
  } tls;
  struct Limits {
    std::size_t max_body = std::size_t{8} << 20;  ///< a batch of 10,000 slots must fit
    std::size_t max_header = std::size_t{16} << 10;
    std::size_t max_connections = 20'000;
    std::size_t max_connections_per_address = 0;  ///< 0: half of them
    std::chrono::milliseconds idle_timeout{75'000};
    std::chrono::milliseconds request_timeout{30'000};
    std::chrono::milliseconds handshake_timeout{10'000};
    std::chrono::milliseconds write_timeout{30'000};
    std::chrono::milliseconds drain_timeout{10'000};
  } limits;
  std::size_t threads = 0;  ///< 0: one per core
  struct Embedded {         ///< for programs with weir::Limiter, not for the service
    bool service_mode = false;
    std::string service = "http://127.0.0.1:8080";
    std::string service_key;  ///< secret
    std::string service_ca;
  } embedded;
  /// Where the file gives a setting or a section of them; line 0: something overrides it.
  std::map<std::string, policy::yaml::Mark, std::less<>> marks = {};

  Config();
};

/// Why a service with Config::Listen::all_off() does not start.
inline constexpr std::string_view kAllOff =
    "listen: http, grpc and resp are all off, so nothing would be served; give one of them an "
    "address, such as http: 127.0.0.1:8080";

/// One value given by the environment or a flag, and its key: {"listen.http", "off"}.
struct Override {
  std::string key;
  std::string value;
  std::string source;  ///< for messages: "--http", "WEIR_LISTEN_HTTP"
};

/// A setting as the command line and the documentation show it.
struct SettingInfo {
  std::string_view key;   ///< "listen.http"
  std::string_view flag;  ///< "--http"; empty: none
  std::string_view help;
  bool list = false;  ///< several values; in the environment and in flags separated by commas
};
/// Every setting, in the order of the documentation.
std::span<const SettingInfo> Settings();

/// The environment variable of a key: WEIR_LISTEN_HTTP.
std::string EnvironmentName(std::string_view key);

/// The settings in the environment.
struct Environment {
  std::vector<Override> overrides;
  /// A sentence for each WEIR_… that is not a setting, for the log: it may be a typo, or belong to
  /// something else (WEIR_PORT in Kubernetes).
  std::vector<std::string> unknown;
};
/// `variables` are texts like "WEIR_STORE=memory:"; others are skipped.
Environment ReadEnvironment(std::span<const char* const> variables);
/// The same for this process's own environment.
Environment ReadEnvironment();

/// Reads the file (empty path: none), then the overrides in order. Errors are added to
/// `problems`, and the config must then not be used. Relative `policies` of the file are relative
/// to its folder.
Config Load(const std::string& path, std::span<const Override> overrides,
            std::vector<policy::yaml::Problem>& problems);

/// The same from text, for tests and fuzzing; `file` is used in messages.
Config Parse(std::string_view text, const std::string& file, std::span<const Override> overrides,
             std::vector<policy::yaml::Problem>& problems);

/// What is wrong with the setting that `message` begins with, at its place in the file: "store: …".
policy::yaml::Problem ProblemIn(const Config& config, const std::string& file, std::string message);

}  // namespace weir::config
