#include "admin/mysql/session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "admin/mysql/policy_store.h"
#include "admin/mysql/sql.h"
#include "admin/sql/sql_ledger.h"
#include "drivers/mysql/error.h"
#include "drivers/mysql/migration.h"
#include "drivers/mysql/url.h"

namespace weir::policy::mysql {
namespace {

using weir::mysql::Answer;

weir::mysql::ConnectionOptions ConnectionOptionsOf(const std::string& url,
                                                   std::chrono::milliseconds patience) {
  weir::mysql::ConnectionOptions options;
  options.url = url;
  options.connect_timeout = std::chrono::seconds(1);
  options.statement_timeout = patience;
  // A node that hangs while it holds the lock on changes loses it.
  options.limits = {.lock_wait = std::chrono::seconds(4),
                    .statement = std::chrono::seconds(4),
                    .idle_transaction = std::chrono::seconds(5)};
  return options;
}

class MysqlRows final : public sql::Rows {
 public:
  explicit MysqlRows(weir::mysql::Rows rows) : rows_(std::move(rows)) {}
  bool Next() override { return rows_.Next(); }
  std::int64_t Int(int column) const override { return rows_.Int(static_cast<unsigned>(column)); }
  std::string Text(int column) const override {
    return std::string(rows_.Text(static_cast<unsigned>(column)));
  }

 private:
  weir::mysql::Rows rows_;
};

/// The statement with literals in place of the parameters.
std::string Filled(std::string_view sql, std::span<const sql::Value> values) {
  std::string out;
  auto next = values.begin();
  for (const char c : sql) {
    if (c != '?' || next == values.end()) {
      out += c;
      continue;
    }
    const sql::Value& value = *next++;
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      out += std::to_string(*number);
    } else {
      weir::mysql::AppendLiteral(out, std::get<std::string_view>(value));
    }
  }
  return out;
}

}  // namespace

MysqlSession::MysqlSession(std::string url, std::chrono::milliseconds patience)
    : url_(std::move(url)),
      patience_(patience),
      connection_(ConnectionOptionsOf(url_, patience)),
      reader_(ConnectionOptionsOf(url_, std::max(patience, kLongRead))) {}

Status Migrate(const std::string& url) {
  return weir::mysql::Migrate(url, "policies", Migrations());
}

Status MysqlSession::Migrate() { return mysql::Migrate(url_); }

Answer MysqlSession::Await(const std::string& sql) {
  return transaction_ != 0 ? connection_.Run(sql, transaction_)
                           : Await(connection_, sql, patience_);
}

Answer MysqlSession::Await(weir::mysql::Connection& connection, const std::string& sql,
                           std::chrono::milliseconds patience) {
  const auto began = std::chrono::steady_clock::now();
  Answer answer = connection.Run(sql);
  // Retries if the connection had died unnoticed, but does not wait again for one that cannot be
  // opened or for a server that hangs.
  const bool at_once = std::chrono::steady_clock::now() - began < patience / 2;
  if (weir::mysql::IsLost(answer.error) && at_once) answer = connection.Run(sql);
  return answer;
}

namespace {

Result<std::unique_ptr<sql::Rows>> RowsOf(Answer answer) {
  if (!answer.status.ok()) return answer.status.error();
  if (answer.results.empty()) return Error{Code::kInternal, "mysql: no response"};
  return std::unique_ptr<sql::Rows>(std::make_unique<MysqlRows>(std::move(answer.results[0])));
}

}  // namespace

Result<std::unique_ptr<sql::Rows>> MysqlSession::Run(std::string_view sql,
                                                     std::span<const sql::Value> values) {
  return RowsOf(Await(Filled(sql, values)));
}

Result<std::unique_ptr<sql::Rows>> MysqlSession::RunLong(std::string_view sql) {
  return RowsOf(Await(reader_, std::string(sql), std::max(patience_, kLongRead)));
}

Status MysqlSession::Begin() {
  transaction_ = 0;
  (void)connection_.Ready();  // if this fails, so does what follows
  Status begun = Await(std::string(connection_.begin())).status;
  if (begun.ok()) transaction_ = connection_.session();
  return begun;
}

Status MysqlSession::End(bool commit) {
  const std::string_view sql = commit ? connection_.commit() : connection_.rollback();
  Status ended = connection_.Run(sql, transaction_).status;
  transaction_ = 0;
  return ended;
}

Result<std::unique_ptr<PolicyStore>> Open(const std::string& url, Catalog& catalog,
                                          shared::Options options) {
  if (const auto target = weir::mysql::ParseUrl(url); !target.ok()) return target.error();
  auto session = std::make_unique<MysqlSession>(url, options.patience);
  return shared::SharedPolicyStore::Open(std::make_unique<sql::SqlLedger>(std::move(session)),
                                         catalog, std::move(options));
}

}  // namespace weir::policy::mysql
