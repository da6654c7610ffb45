#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace weir::config {
namespace {

using namespace std::chrono_literals;
using policy::yaml::Problem;
using policy::yaml::ToString;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

struct Read {
  explicit Read(std::string_view text, std::vector<Override> overrides = {})
      : config(Parse(text, "etc/weir.yaml", overrides, problems)) {}
  std::string Said() const { return ToString(problems); }

  std::vector<Problem> problems;
  Config config;
};

TEST(Config, WithoutAFileEverythingHasItsDefault) {
  std::vector<Problem> problems;
  const Config config = Load("", {}, problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(config.listen.http.ToString(), "127.0.0.1:8080");
  EXPECT_EQ(config.listen.grpc.ToString(), "127.0.0.1:8081");
  EXPECT_EQ(config.listen.resp.ToString(), "127.0.0.1:6380");
  EXPECT_EQ(config.data, "./weir-data");
  EXPECT_EQ(config.store, "memory:");
  EXPECT_EQ(config.ipv6_prefix, 64);
  EXPECT_EQ(config.auth.user_header, "X-User-Id");
  EXPECT_EQ(config.auth.api_key_header, "X-API-Key");
  EXPECT_EQ(config.default_policy.quota, *Quota::TokenBucket(100, 10));
}

TEST(Config, WhatOnlyTheWholeCanTellHasAPlaceToo) {
  EXPECT_EQ(Read("data: d\nstore: main\n").Said().substr(0, 24), "etc/weir.yaml:2:8: store");
  // Of a setting that is missing: its section.
  EXPECT_THAT(Read("data: d\ntls: { key: k.pem }\n").Said(),
              HasSubstr("etc/weir.yaml:2:6: tls.cert: required with tls.key"));
  EXPECT_THAT(Read("region:\n  lends: true\n").Said(),
              HasSubstr("etc/weir.yaml:2:10: region.lends: requires"));
  // The file does not say it.
  EXPECT_THAT(Read("store: \"memory:\"\n", {{"store", "main", "--store"}}).Said(),
              HasSubstr("etc/weir.yaml: store: expected a URL"));
}

TEST(Config, RefusesProxiesThatListenNowhereOrLeadNowhere) {
  EXPECT_THAT(Read("proxy: { listen: \"off\" }\n").Said(), HasSubstr("proxy.listen: expected"));
  EXPECT_THAT(Read("proxy: { per_ip: 0/60m }\n").Said(), HasSubstr("at least one request"));
  for (const char* url : {"foo", "ftp://h", "http://h:x", "http://h:1/path", "http://u:p@h"}) {
    const Read read("proxy: { upstream: \"" + std::string(url) + "\" }\n");
    EXPECT_THAT(read.Said(), HasSubstr("expected http://host:port or https://host:port")) << url;
    EXPECT_THAT(read.Said(), Not(HasSubstr("u:p")));
  }
}

TEST(Config, CertificatesOfAControlPlaneComeWithTheirKeys) {
  EXPECT_THAT(Read("xds: { tls_cert: c.pem }\n").Said(),
              HasSubstr("etc/weir.yaml:1:18: xds.tls_cert and xds.tls_key must be given together"));
}

TEST(Config, KeysOfAnIssuerDoNotComeInPlaintext) {
  EXPECT_THAT(
      Read("oidc: { issuer: i, audience: a, jwks: \"http://i/keys\", roles: [\"read:r\"] }\n")
          .Said(),
      HasSubstr("oidc.jwks: must be a file or an https:// URL"));
}

// As a full disk leaves it: with the defaults of everything, nobody would need a key.
TEST(Config, RefusesAFileOfZeroBytes) {
  const test::TempDir folder;
  const std::string empty = folder.Write("weir.yaml", "").string();
  std::vector<Problem> problems;
  (void)Load(empty, {}, problems);
  EXPECT_THAT(ToString(problems), HasSubstr(empty + ": is empty; write"));
  problems.clear();
  (void)Load(folder.Write("comment.yaml", "# the defaults\n").string(), {}, problems);
  EXPECT_THAT(problems, IsEmpty());
}

TEST(Config, RefusesWhatIsNoHeaderField) {
  const Read read("auth: { user_header: \"X-User: admin\" }\n");
  EXPECT_THAT(read.Said(), testing::HasSubstr("header field"));
}

TEST(Config, ReadsEverySetting) {
  const Read read(R"(
listen: { http: 0.0.0.0:80, grpc: "off", resp: "[::1]:0" }
data: /var/lib/weir
store: redis://:hunter2@cache:6379
policies: [a.yaml, /etc/b.yaml]
admin: { keys: [correct-horse, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"], allow: [127.0.0.0/8, "::1"] }
slots: { store: postgres://db/slots }
notify: { store: "sqlite:", cache: redis://c, broker: kafka://k:9092 }
headers: { x_ratelimit: false, ietf: true }
snapshot: { interval: 30s }
log: { format: json, level: warn }
trusted_proxies: 10.0.0.0/8
ipv6_prefix: 56
grpc: { max_streams: 100, max_message: 64k }
auth: { user_header: X-Account, api_key_header: X-Token }
max_keys: 5_000_000
local_share: 0.5
unmatched: deny
tls: { cert: c.pem, key: k.pem, client_ca: ca.pem }
limits: { max_body: 2M, max_header: 32k, max_connections: 100, idle_timeout: 1m, request_timeout: 500ms, drain_timeout: 3s }
threads: 4
default_policy: { quota: { fixed_window: { limit: 7, window: 1s } }, on_store_error: deny }
)");
  ASSERT_THAT(read.problems, IsEmpty()) << read.Said();
  const Config& config = read.config;
  EXPECT_EQ(config.listen.http, (Address{false, "0.0.0.0", 80}));
  EXPECT_EQ(config.grpc.max_streams, 100U);
  EXPECT_EQ(config.grpc.max_message, 65'536U);
  EXPECT_EQ(config.auth.user_header, "X-Account");
  EXPECT_EQ(config.auth.api_key_header, "X-Token");
  EXPECT_TRUE(config.listen.grpc.off);
  EXPECT_EQ(config.listen.resp.ToString(), "[::1]:0");
  EXPECT_EQ(config.store, "redis://:hunter2@cache:6379");
  EXPECT_THAT(config.policies, ElementsAre("etc/a.yaml", "/etc/b.yaml"));
  ASSERT_THAT(config.admin.keys, SizeIs(2));
  EXPECT_EQ(config.admin.keys[0], Sha256("correct-horse"));
  EXPECT_EQ(config.admin.keys[1], Sha256("abc"));  // the digest of FIPS 180-2, appendix B.1
  EXPECT_THAT(config.admin.allow, SizeIs(2));
  EXPECT_EQ(config.slots.store, "postgres://db/slots");
  EXPECT_EQ(config.notify.broker, "kafka://k:9092");
  EXPECT_FALSE(config.headers.x_ratelimit);
  EXPECT_EQ(config.snapshot.interval, 30s);
  EXPECT_EQ(config.log.format, LogFormat::kJson);
  EXPECT_EQ(config.log.level, LogLevel::kWarn);
  EXPECT_THAT(config.trusted_proxies, SizeIs(1));
  EXPECT_EQ(config.max_keys, 5'000'000U);
  EXPECT_EQ(config.local_share, 0.5);
  EXPECT_TRUE(config.deny_unmatched);
  EXPECT_EQ(config.tls.client_ca, "ca.pem");
  EXPECT_EQ(config.limits.max_body, 2U * 1024 * 1024);
  EXPECT_EQ(config.limits.request_timeout, 500ms);
  EXPECT_EQ(config.threads, 4U);
  EXPECT_EQ(config.default_policy.quota, *Quota::FixedWindow(7, 1s));
  EXPECT_EQ(config.default_policy.on_store_error, policy::OnStoreError::kDeny);
}

TEST(Config, LaterOverridesWin) {
  const Read read("store: redis://a\nthreads: 1",
                  {{"store", "memory:", "WEIR_STORE"},
                   {"threads", "2", "WEIR_THREADS"},
                   {"threads", "3", "--threads"},
                   {"policies", "x.yaml,y.yaml", "--policies"},
                   {"default_policy", "{quota: {fixed_window: {limit: 9, window: 1s}}}",
                    "WEIR_DEFAULT_POLICY"}});
  ASSERT_THAT(read.problems, IsEmpty()) << read.Said();
  EXPECT_EQ(read.config.store, "memory:");
  EXPECT_EQ(read.config.threads, 3U);
  EXPECT_THAT(read.config.policies, ElementsAre("x.yaml", "y.yaml"));  // relative to where we are
  EXPECT_EQ(read.config.default_policy.quota, *Quota::FixedWindow(9, 1s));
}

TEST(Config, TheEnvironmentNamesSettings) {
  const char* const variables[] = {"PATH=/bin", "WEIR_LISTEN_HTTP=off", "WEIR_STORE=a=b",
                                   "WEIR_CONFIG=/etc/weir.yaml", "WEIR_THREDS=3",
                                   // These are for the commands that connect to a service.
                                   "WEIR_KEY_FILE=/key", "WEIR_TIMEOUT=5"};
  const Environment environment = ReadEnvironment(variables);
  ASSERT_THAT(environment.overrides, SizeIs(2));
  EXPECT_EQ(environment.overrides[0].key, "listen.http");
  EXPECT_EQ(environment.overrides[0].value, "off");
  EXPECT_EQ(environment.overrides[1].value, "a=b");
  EXPECT_THAT(environment.unknown,
              ElementsAre("unknown setting WEIR_THREDS; did you mean WEIR_THREADS?"));
}

TEST(Config, VariablesOfEnvoysServiceAreUnderstood) {
  const char* const variables[] = {"WEIR_GRPC_LIMIT_HEADER=x-ours", "LIMIT_LIMIT_HEADER=x-theirs",
                                   "LIMIT_RESPONSE_HEADERS_ENABLED=true",
                                   "LIMIT_RESET_HEADER=x-reset", "LIMIT_LIMIT=3"};
  const Environment environment = ReadEnvironment(variables);
  EXPECT_THAT(environment.unknown, IsEmpty());
  std::vector<policy::yaml::Problem> problems;
  const Config config = Load("", environment.overrides, problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_TRUE(config.grpc.response_headers);
  EXPECT_EQ(config.grpc.limit_header, "x-ours");
  EXPECT_EQ(config.grpc.reset_header, "x-reset");
  EXPECT_EQ(config.grpc.remaining_header, "RateLimit-Remaining");
}

struct Case {
  const char* text;
  const char* said;
};

TEST(Config, SaysWhereAndWhatIsWrong) {
  const Case cases[] = {
      {"stor: x", "etc/weir.yaml:1:1: unknown setting 'stor'; did you mean 'store'?"},
      {"listen:\n  htp: off",
       "etc/weir.yaml:2:3: unknown setting 'listen.htp'; did you mean 'listen.http'?"},
      {"lisen: { http: off }", "unknown setting 'lisen'; did you mean 'listen'?"},
      {"foo: 1", "etc/weir.yaml:1:1: unknown setting 'foo'"},  // not similar to 'log'
      {"listen: 8080", "listen: expected a mapping"},
      {"listen: { http: web }", "etc/weir.yaml:1:17: listen.http: expected an IP address and port"},
      {"listen: { http: \"2001:db8::1:80\" }", "listen.http: expected"},
      {"listen: { http: 127.0.0.1:65536 }", "listen.http: expected"},
      {"store: oracle://x", "store: expected a URL that begins with one of memory:"},
      {"threads: many", "threads: expected a whole number from 0 to 1024, got 'many'"},
      {"threads: [1]", "threads: expected one value"},
      {"policies: {a: b}", "policies: expected a list of strings"},
      {"log: { level: loud }", "log.level: expected debug, info, warn, error or off"},
      {"admin: { allow: [nowhere] }", "admin.allow: "},
      {"admin: { keys: [short] }", "admin.keys: a key must have at least 8 characters"},
      {"access: { keys: [\"ci:read:fifteen-letters\"] }",
       "access.keys: ci: a key must have at least 16 characters"},
      // Not a key named `read:@/run/secrets/ci` that may do everything.
      {"access: { keys: [{ name: \"ci:admin\", roles: [read], file: /run/secrets/ci }] }",
       "etc/weir.yaml:1:18: access.keys: the name 'ci:admin' must not contain a colon"},
      {"access: { keys: [{ name: ci, roles: [\"read:x\"], key: a-key-of-many-letters }] }",
       "access.keys: unknown role 'read:x'"},
      {"access: { keys: [{ name: ci, roles: [read], file: /a, key: a-key-of-many-letters }] }",
       "access.keys: give one of key, hash and file"},
      {"access: { keys: [{ name: ci, roles: [read] }] }",
       "access.keys: give one of key, hash and file"},
      {"access: { open: [chekc] }",
       "access.open: expected none, or some of check, give_back, slots, slots_change and send, got "
       "'chekc'; did you mean 'check'?"},
      {"log: { level: wran }", "or off, got 'wran'; did you mean 'warn'?"},
      {"default_policy: { on_store_error: lcoal }", "got 'lcoal'; did you mean 'local'?"},
      {"admin: { keys: [\"sha256:12\"] }", "64 hexadecimal digits"},
      {"limits: { max_body: 1T }", "limits.max_body: expected bytes"},
      {"snapshot: { interval: 5 }", "snapshot.interval: invalid duration '5'"},
      {"store_timeout: 10h", "store_timeout: expected at most 1m, got '10h'"},
      {"store_breaker_failures: 1000000", "expected a whole number from 1 to 1000"},
      {"local_share: 0", "local_share: expected a number"},
      {"tls: { cert: a.pem }", "tls.key: required with tls.cert"},
      {"tls: { key: a.pem }", "tls.cert: required with tls.key"},
      {"default_policy: { quta: {} }", "did you mean 'quota'?"},
      {"- a", "expected settings"},
      {"a: b: c", "etc/weir.yaml:1:"},
  };
  for (const Case& one : cases) EXPECT_THAT(Read(one.text).Said(), HasSubstr(one.said)) << one.text;
}

TEST(Config, AShortAdminKeyIsNotedWhereverItStands) {
  const auto noted = [](const std::string& key) {
    const Read read("admin: { keys: [\"" + key + "\"] }");
    EXPECT_THAT(read.problems, IsEmpty()) << read.Said();
    return read.config.admin.short_keys;
  };
  EXPECT_TRUE(noted("fifteen-letters"));
  EXPECT_FALSE(noted("sixteen--letters"));
  const test::TempDir folder;  // its name is longer
  EXPECT_TRUE(noted("@" + folder.Write("short", "fifteen-letters\n").string()));
  EXPECT_FALSE(noted("@" + folder.Write("long", "sixteen--letters\n").string()));
}

TEST(Config, AnOpenDoorNeedsAnAdminKey) {
  EXPECT_THAT(Read("listen: { http: 0.0.0.0:8080 }").Said(), HasSubstr("admin.keys: required"));
  EXPECT_THAT(Read("listen: { http: \":8080\" }").Said(), HasSubstr("admin.keys: required"));
  EXPECT_THAT(Read("listen: { http: \"[::]:8080\" }").Said(), HasSubstr("admin.keys: required"));
  EXPECT_THAT(Read("listen: { http: 0.0.0.0:8080 }\nadmin: { keys: [0123456789] }").problems,
              IsEmpty());
  EXPECT_THAT(Read("listen: { http: 127.9.9.9:8080 }").problems, IsEmpty());
  EXPECT_THAT(Read("listen: { http: \"[::1]:8080\", grpc: 0.0.0.0:1 }").problems, IsEmpty());
}

TEST(Config, APortAloneIsOneOfThisMachine) {
  const auto read =
      Read("listen: { http: 18080, grpc: 0 }\nproxy: { listen: 18000, admin: 18001 }\n");
  ASSERT_THAT(read.problems, IsEmpty()) << read.Said();
  EXPECT_EQ(read.config.listen.http, (Address{false, "127.0.0.1", 18080}));
  EXPECT_EQ(read.config.listen.grpc, (Address{false, "127.0.0.1", 0}));
  EXPECT_EQ(read.config.proxy.listen, "127.0.0.1:18000");
  EXPECT_EQ(read.config.proxy.admin, "127.0.0.1:18001");
  EXPECT_EQ(Address::Parse(":18080")->host, "0.0.0.0");
  for (const char* text : {"65536", "-1", "", "http", "0x50", "80 "}) {
    EXPECT_FALSE(Address::Parse(text)) << text;
  }
  EXPECT_THAT(Read("listen: { http: 99999 }").Said(), HasSubstr("a port, or off"));
}

TEST(Config, AddressesThatNeedNoKeyMustBeNamed) {
  const std::string open = "listen: { http: 0.0.0.0:8080 }\n";
  EXPECT_THAT(Read(open + "admin: { keyless: allowed }").Said(), HasSubstr("requires admin.allow"));
  EXPECT_THAT(Read(open + "admin: { allow: [172.30.7.1] }").Said(),
              HasSubstr("admin.keys: required"));
  const auto named = Read(open + "admin: { keyless: allowed, allow: [172.30.7.1] }");
  EXPECT_THAT(named.problems, IsEmpty()) << named.Said();
  EXPECT_THAT(Read("admin: { keyless: maybe }").Said(), HasSubstr("local, allowed or off"));
}

TEST(Config, SecretsAreNotRepeated) {
  EXPECT_THAT(Read("traces: { headers: [\"hunter2\"] }").Said(), Not(HasSubstr("hunter2")));
  EXPECT_THAT(Read("store: oracle://me:hunter2@db").Said(), Not(HasSubstr("hunter2")));
  EXPECT_THAT(Read("admin: { keys: [hunter2] }").Said(), Not(HasSubstr("hunter2")));
}

TEST(Config, DigestsAreCompared) {
  EXPECT_TRUE(EqualDigests(Sha256("a"), Sha256("a")));
  EXPECT_FALSE(EqualDigests(Sha256("a"), Sha256("b")));
}

}  // namespace
}  // namespace weir::config
