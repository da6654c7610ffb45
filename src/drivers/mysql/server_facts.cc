#include "drivers/mysql/server_facts.h"

#include <mysql.h>

#include <map>
#include <memory>
#include <string_view>

#include "drivers/mysql/error.h"

namespace weir::mysql {
namespace {

// Not SELECT @@…: a variable that one of the two kinds of server lacks would be an error.
constexpr std::string_view kAsk =
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'innodb_read_only', 'server_uuid', "
    "'server_uid', 'server_id', 'hostname', 'port', 'socket', 'wsrep_on', 'wsrep_cluster_name', "
    "'group_replication_group_name')";

Error ErrorOf(MYSQL* handle) {
  return {CodeOf(mysql_errno(handle)), std::string("mysql: ") + mysql_error(handle)};
}

bool IsOn(const std::string& value) { return !value.empty() && value != "OFF" && value != "0"; }

}  // namespace

Result<ServerFacts> ReadFacts(st_mysql* handle) {
  if (mysql_real_query(handle, kAsk.data(), kAsk.size()) != 0) return ErrorOf(handle);
  const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> rows(mysql_store_result(handle),
                                                                      &mysql_free_result);
  if (rows == nullptr) return ErrorOf(handle);
  std::map<std::string, std::string> values;
  while (MYSQL_ROW row = mysql_fetch_row(rows.get())) {
    if (row[0] != nullptr) values[row[0]] = row[1] == nullptr ? "" : row[1];
  }
  ServerFacts facts;
  // A server that reads another's files (Aurora's readers) sets only the second one.
  facts.read_only = IsOn(values["read_only"]) || IsOn(values["innodb_read_only"]);
  for (const char* name :
       {"server_uuid", "server_uid", "server_id", "hostname", "port", "socket"}) {
    facts.identity += values[name] + '\n';
  }
  if (IsOn(values["wsrep_on"])) {
    facts.cluster = "galera " + values["wsrep_cluster_name"];
  } else if (const std::string& group = values["group_replication_group_name"]; !group.empty()) {
    facts.cluster = "group " + group;
  }
  return facts;
}

bool AreRivals(const ServerFacts& one, const ServerFacts& other) {
  if (one.read_only || other.read_only || one.identity == other.identity) return false;
  return one.cluster.empty() || one.cluster != other.cluster;
}

}  // namespace weir::mysql
