#include "admin/postgres/session.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

#include "admin/postgres/policy_store.h"
#include "admin/postgres/sql.h"
#include "admin/sql/sql_ledger.h"
#include "drivers/postgres/login.h"
#include "drivers/postgres/migration.h"

namespace weir::policy::postgres {
namespace {

using weir::postgres::Answer;
using weir::postgres::Params;

constexpr const char* kChannel = "weir_policies";
constexpr const char* kNotify = "SELECT pg_notify('weir_policies', '')";

weir::postgres::ConnectionOptions ConnectionOptionsOf(const std::string& url) {
  weir::postgres::ConnectionOptions options;
  options.url = url;
  options.connect_timeout = std::chrono::milliseconds(1000);
  options.reconnect_delay = std::chrono::milliseconds(50);
  options.longest_reconnect_delay = std::chrono::milliseconds(400);
  // A node that hangs while it holds the lock on changes loses it.
  options.session =
      "-c default_transaction_isolation=read\\ committed -c statement_timeout=4500ms "
      "-c idle_in_transaction_session_timeout=5000ms -c jit=off";
  return options;
}

class PostgresRows final : public sql::Rows {
 public:
  explicit PostgresRows(weir::postgres::Rows rows) : rows_(std::move(rows)) {}
  bool Next() override { return ++row_ < rows_.size(); }
  std::int64_t Int(int column) const override { return rows_.Int(row_, column); }
  std::string Text(int column) const override { return std::string(rows_.Text(row_, column)); }

 private:
  weir::postgres::Rows rows_;
  int row_ = -1;
};

/// Replaces each `?` by a numbered parameter.
std::string Numbered(std::string_view sql) {
  std::string out;
  int number = 0;
  for (const char c : sql) {
    if (c == '?') {
      out.append("$").append(std::to_string(++number));
    } else {
      out += c;
    }
  }
  return out;
}

Params ParamsOf(std::span<const sql::Value> values) {
  Params params;
  for (const sql::Value& value : values) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      params.Int(*number);
    } else {
      params.Text(std::get<std::string_view>(value));
    }
  }
  return params;
}

}  // namespace

PostgresSession::PostgresSession(std::string url, Duration patience)
    : url_(std::move(url)), patience_(patience), connection_(io_, ConnectionOptionsOf(url_)) {}

Status Migrate(const std::string& url) {
  return weir::postgres::Migrate(url, "policies", Migrations());
}

Status PostgresSession::Migrate() { return postgres::Migrate(url_); }

Answer PostgresSession::AwaitOnce(const std::string& sql, const Params& params, Duration patience) {
  // The loop has not run since the last statement: the connection may have been lost meanwhile.
  io_.restart();
  io_.poll();
  // Shared with the callback, which may outlive this call if it is aborted.
  const auto answer = std::make_shared<std::optional<Answer>>();
  std::vector<weir::postgres::Connection::Query> group;
  group.push_back({sql, params, [answer](Answer given) { *answer = std::move(given); }, patience});
  connection_.SendGroup(std::move(group), transaction_);
  while (!*answer) {
    if (aborted_) return {.status = Error{Code::kUnavailable, "postgres: the service is stopping"}};
    io_.restart();
    io_.run_one();
  }
  return std::move(**answer);
}

void PostgresSession::Abort() noexcept {
  aborted_ = true;
  boost::asio::post(io_, [] {});
}

Answer PostgresSession::Await(const std::string& sql, const Params& params, Duration patience) {
  const auto began = std::chrono::steady_clock::now();
  Answer answer = AwaitOnce(sql, params, patience);
  const bool lost = !answer.status.ok() && answer.sqlstate.empty();
  // Retries if the connection had died unnoticed, but does not wait again for one that cannot be
  // opened or for a server that hangs.
  const bool at_once = std::chrono::steady_clock::now() - began < patience / 2;
  if (lost && at_once && transaction_ == 0) answer = AwaitOnce(sql, params, patience);
  return answer;
}

namespace {

Result<std::unique_ptr<sql::Rows>> RowsOf(Answer answer) {
  if (!answer.status.ok()) return answer.status.error();
  return std::unique_ptr<sql::Rows>(std::make_unique<PostgresRows>(std::move(answer.rows)));
}

}  // namespace

Result<std::unique_ptr<sql::Rows>> PostgresSession::Run(std::string_view sql,
                                                        std::span<const sql::Value> values) {
  return RowsOf(Await(Numbered(sql), ParamsOf(values), patience_));
}

Result<std::unique_ptr<sql::Rows>> PostgresSession::RunLong(std::string_view sql) {
  return RowsOf(Await(std::string(sql), {}, std::max(patience_, kLongRead)));
}

Status PostgresSession::Begin() {
  transaction_ = 0;
  Status begun = Await("BEGIN", {}, patience_).status;
  if (begun.ok()) transaction_ = connection_.session();
  return begun;
}

Status PostgresSession::End(bool commit) {
  Status ended = AwaitOnce(commit ? "COMMIT" : "ROLLBACK", {}, patience_).status;
  transaction_ = 0;
  return ended;
}

Status PostgresSession::Announce() { return Await(kNotify, {}, patience_).status; }

void PostgresSession::Listen(std::function<void()> heard) {
  Channel::Callbacks callbacks;
  callbacks.message = [heard](std::string_view) { heard(); };
  callbacks.changed = [this, heard](bool up) {
    listening_ = up;
    heard();
  };
  channel_ = weir::postgres::OpenChannel(url_, kChannel, std::move(callbacks));
}

Result<std::unique_ptr<PolicyStore>> Open(const std::string& url, Catalog& catalog,
                                          shared::Options options) {
  if (const Status login = weir::postgres::CheckLogin(url); !login.ok()) return login.error();
  auto session = std::make_unique<PostgresSession>(url, options.patience);
  return shared::SharedPolicyStore::Open(std::make_unique<sql::SqlLedger>(std::move(session)),
                                         catalog, std::move(options));
}

}  // namespace weir::policy::postgres
