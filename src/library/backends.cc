#include "library/backends.h"

#include <algorithm>
#include <utility>

#include "admin/mysql/policy_store.h"
#include "admin/postgres/policy_store.h"
#include "admin/redis/policy_store.h"
#include "base/url.h"
#include "drivers/mysql/channel.h"
#include "drivers/mysql/url.h"
#include "drivers/postgres/channel.h"
#include "drivers/postgres/url.h"
#include "drivers/redis/url.h"
#include "library/sql_backend.h"
#include "store/mysql/key_list.h"
#include "store/mysql/pool.h"
#include "store/mysql/schema.h"
#include "store/postgres/key_list.h"
#include "store/postgres/pool.h"
#include "store/postgres/schema.h"
#include "store/remote/url.h"

namespace weir::library {
namespace {

using store::guard::Guard;

/// How long keys to forget are collected, after the first one: where messages are cheap, and where
/// they are rows that are read five times a second anyway.
constexpr std::chrono::milliseconds kAtOnce{10};
constexpr std::chrono::milliseconds kInRows{200};

Result<std::unique_ptr<Backend>> OpenPostgres(BackendOptions options, Guard& guard) {
  const auto target = postgres::Target::Parse(options.url);
  if (!target.ok()) return target.error();
  return OpenSqlBackend(options, guard,
                        {.hosts = target->names(),
                         .interval = kAtOnce,
                         .open_pool = store::postgres::OpenPool,
                         .read_keys = store::postgres::ReadKeys,
                         .open_channel = postgres::OpenChannel});
}

Result<std::unique_ptr<Backend>> OpenMysql(BackendOptions options, Guard& guard) {
  const auto target = mysql::ParseUrl(options.url);
  if (!target.ok()) return target.error();
  std::vector<std::string> hosts;
  for (const mysql::Endpoint& endpoint : target->endpoints) hosts.push_back(endpoint.host);
  const bool migrate = options.migrate;
  const auto open_channel = [migrate](std::string url, std::string name,
                                      Channel::Callbacks callbacks) {
    return mysql::OpenChannel(std::move(url), std::move(name), std::move(callbacks), migrate);
  };
  return OpenSqlBackend(options, guard,
                        {.hosts = std::move(hosts),
                         .interval = kInRows,
                         .open_pool = store::mysql::OpenPool,
                         .read_keys = store::mysql::ReadKeys,
                         .open_channel = open_channel});
}

constexpr std::string_view kPostgresSchemes[] = {"postgres", "postgresql"};
constexpr std::string_view kMysqlSchemes[] = {"mysql", "mariadb"};
constexpr std::string_view kRemoteSchemes[] = {"weir", "weirs"};
constexpr std::string_view kRedisSchemes[] = {"redis", "rediss", "redis+cluster", "rediss+cluster"};

constexpr BackendTables kPostgresTables[] = {{"limits", store::postgres::Migrate},
                                             {"policies", policy::postgres::Migrate}};
constexpr BackendTables kMysqlTables[] = {{"limits", store::mysql::Migrate},
                                          {"messages", mysql::MigrateChannel},
                                          {"policies", policy::mysql::Migrate}};

template <auto kParse>
Status Check(const std::string& url) {
  const auto parsed = kParse(url);
  return parsed.ok() ? Status() : Status(parsed.error());
}

constexpr BackendKind kKinds[] = {
    {kRedisSchemes, OpenRedisBackend, policy::redis::Open, {}, Check<redis::ParseUrl>},
    {kPostgresSchemes, OpenPostgres, policy::postgres::Open, kPostgresTables,
     Check<postgres::Target::Parse>},
    {kMysqlSchemes, OpenMysql, policy::mysql::Open, kMysqlTables, Check<mysql::ParseUrl>},
    {kRemoteSchemes, OpenRemoteBackend, nullptr, {}, Check<store::remote::ParseUrl>},
};

}  // namespace

const BackendKind* FindBackend(std::string_view url) noexcept {
  const std::string_view scheme = SchemeOf(url);
  if (!url.substr(scheme.size()).starts_with("://")) return nullptr;
  for (const BackendKind& kind : kKinds) {
    if (std::ranges::find(kind.schemes, scheme) != kind.schemes.end()) return &kind;
  }
  return nullptr;
}

Result<std::unique_ptr<Backend>> OpenBackend(BackendOptions options, Guard& guard) {
  if (const BackendKind* kind = FindBackend(options.url)) {
    return kind->open_store(std::move(options), guard);
  }
  std::string expected;
  for (const BackendKind& kind : kKinds) {
    for (const std::string_view scheme : kind.schemes) {
      expected.append(expected.empty() ? "" : ", ").append(scheme).append("://");
    }
  }
  // The rest of the URL may be secret.
  const std::string_view url = options.url;
  const std::string_view scheme = SchemeOf(url);
  const bool has_scheme = url.substr(scheme.size()).starts_with("://");
  return Error{Code::kInvalidArgument,
               "the store's URL must begin with " + expected +
                   (has_scheme ? ", not " + std::string(scheme) + "://" : "")};
}

}  // namespace weir::library
