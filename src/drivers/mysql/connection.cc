#include "drivers/mysql/connection.h"

#include <mysql.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/number.h"
#include "drivers/mysql/error.h"
#include "drivers/mysql/server_facts.h"
#include "drivers/mysql/url.h"

namespace weir::mysql {
namespace {

using Clock = std::chrono::steady_clock;

unsigned WholeSeconds(std::chrono::milliseconds time) {
  return static_cast<unsigned>(
      std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(time).count(), 1));
}

std::string SessionSettings(Dialect dialect, const SessionLimits& limits) {
  std::string sql =
      "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET SESSION autocommit=1, "
      "time_zone='+00:00', innodb_lock_wait_timeout=" +
      std::to_string(limits.lock_wait.count());
  if (dialect == Dialect::kMariadb) {
    sql += ", max_statement_time=" + std::to_string(limits.statement.count()) +
           ", idle_transaction_timeout=" + std::to_string(limits.idle_transaction.count());
  } else {
    sql += ", max_execution_time=" + std::to_string(limits.statement.count() * 1000);
  }
  return sql;
}

/// Authentication methods that do not send the password itself.
constexpr const char* kWithoutTls =
    "mysql_native_password,caching_sha2_password,sha256_password,client_ed25519,parsec,"
    "auth_gssapi_client";

const char* OrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

void SetOptions(MYSQL* handle, const ConnectionOptions& options, const Target& target) {
  const unsigned connect = WholeSeconds(options.connect_timeout);
  const unsigned statement = WholeSeconds(options.statement_timeout);
  mysql_options(handle, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
  mysql_options(handle, MYSQL_OPT_READ_TIMEOUT, &statement);
  mysql_options(handle, MYSQL_OPT_WRITE_TIMEOUT, &statement);
  mysql_options(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  const unsigned local_files = 0;
  mysql_options(handle, MYSQL_OPT_LOCAL_INFILE, &local_files);
  if (target.tls == Tls::kOff) {
    // Other methods would send the password in plaintext to any server that asks for it, or
    // have the library prompt at a terminal.
    if (target.socket.empty()) mysql_optionsv(handle, MARIADB_OPT_RESTRICTED_AUTH, kWithoutTls);
    return;
  }
  const my_bool yes = 1;
  mysql_ssl_set(handle, OrNull(target.tls_key), OrNull(target.tls_cert), OrNull(target.tls_ca),
                nullptr, nullptr);
  mysql_options(handle, MYSQL_OPT_SSL_ENFORCE, &yes);
  // Without this the library continues in plaintext if the server offers no TLS.
  const my_bool verify = target.tls == Tls::kVerified ? 1 : 0;
  mysql_options(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
}

/// Whether a line of SHOW GRANTS lets its user write to a server that is read-only to others.
bool WritesWhenReadOnly(std::string_view grant) {
  if (grant.find(" ON *.*") == std::string_view::npos) return false;
  return std::ranges::any_of(
      std::array<std::string_view, 5>{"ALL PRIVILEGES", "SUPER", "READ ONLY ADMIN",
                                      "READ_ONLY ADMIN", "CONNECTION_ADMIN"},
      [&](std::string_view privilege) { return grant.find(privilege) != std::string_view::npos; });
}

/// Queries a server on a connection of its own.
Result<ServerFacts> FactsOf(const ConnectionOptions& options, const Target& target,
                            const Endpoint& endpoint) {
  const std::unique_ptr<MYSQL, decltype(&mysql_close)> handle(mysql_init(nullptr), &mysql_close);
  if (handle == nullptr) return Error{Code::kUnavailable, "mysql: out of memory"};
  SetOptions(handle.get(), options, target);
  if (mysql_real_connect(handle.get(), endpoint.host.c_str(), OrNull(target.user),
                         OrNull(target.password), nullptr, endpoint.port, nullptr, 0) == nullptr) {
    return Error{Code::kUnavailable, std::string("mysql: ") + mysql_error(handle.get())};
  }
  return ReadFacts(handle.get());
}

std::string Name(const Endpoint& endpoint) {
  return endpoint.host + ":" + std::to_string(endpoint.port);
}

}  // namespace

void Rows::Free::operator()(st_mysql_res* result) const noexcept { mysql_free_result(result); }

bool Rows::Next() {
  if (result_ == nullptr) return false;
  row_ = mysql_fetch_row(result_.get());
  lengths_ = row_ == nullptr ? nullptr : mysql_fetch_lengths(result_.get());
  return row_ != nullptr;
}

std::string_view Rows::Text(unsigned column) const noexcept {
  if (row_ == nullptr || column >= mysql_num_fields(result_.get())) return {};
  return row_[column] == nullptr ? std::string_view()
                                 : std::string_view(row_[column], lengths_[column]);
}

std::int64_t Rows::Int(unsigned column) const noexcept {
  return ParseNumber<std::int64_t>(Text(column)).value_or(0);
}

Connection::Connection(ConnectionOptions options) : options_(std::move(options)) {
  // The first call initializes the library, which two threads must not do at the same time.
  static const int ready = mysql_library_init(0, nullptr, nullptr);
  (void)ready;
}

Connection::~Connection() { Disconnect(); }

Answer Connection::Run(std::string_view sql, std::uint64_t session) {
  if (aborted_) return {Error{Code::kUnavailable, "mysql: the connection was closed"}, 2006};
  if (session != 0 && (handle_ == nullptr || session != session_)) {
    return {Error{Code::kUnavailable, "mysql: the session has been lost"}, 2006};
  }
  if (Answer ready = Ready(); !ready.status.ok()) return ready;
  return RunNow(sql);
}

Answer Connection::Ready() {
  if (handle_ != nullptr) return {};
  if (aborted_) return {Error{Code::kUnavailable, "mysql: the connection was closed"}, 2006};
  if (Clock::now() < retry_at_) return {last_error_, 2002};
  if (Status connected = Connect(); !connected.ok()) {
    last_error_ = connected.error();
    Delay();
    return {connected, 2002};
  }
  failures_ = 0;
  return {};
}

Status Connection::Connect() {
  const Result<Target> target = ParseUrl(options_.url);
  if (!target.ok()) return target.error();
  if (target->endpoints.empty()) return ConnectTo(*target, {});
  Status connected;
  for (std::size_t i = 0; i < target->endpoints.size(); ++i) {
    connected = ConnectTo(*target, target->endpoints[i]);
    if (connected.ok()) return CheckRivals(*target, i);
    if (aborted_) break;
    // A user refused here is refused elsewhere too, and should see that error.
    if (connected.error().code != Code::kUnavailable) break;
  }
  return connected;
}

// A failed primary may come back after a replica has been promoted, and accept writes as before.
// It does not know what the new one has granted, so neither is used until an operator decides.
// Earlier hosts are not queried again: they are down, or replicas.
Status Connection::CheckRivals(const Target& target, std::size_t chosen) {
  for (std::size_t i = chosen + 1; i < target.endpoints.size() && !aborted_; ++i) {
    const Result<ServerFacts> other = FactsOf(options_, target, target.endpoints[i]);
    if (!other.ok() || !AreRivals(facts_, *other)) continue;
    Disconnect();
    return Error{Code::kUnavailable, "mysql: " + Name(target.endpoints[chosen]) + " and " +
                                         Name(target.endpoints[i]) +
                                         " both accept writes; make the old primary read-only "
                                         "(SET GLOBAL read_only = 1) or stop it"};
  }
  return {};
}

Status Connection::ConnectTo(const Target& target, const Endpoint& endpoint) {
  handle_ = mysql_init(nullptr);
  if (handle_ == nullptr) return Error{Code::kUnavailable, "mysql: out of memory"};
  ++session_;
  SetOptions(handle_, options_, target);
  if (mysql_real_connect(handle_, OrNull(endpoint.host), OrNull(target.user),
                         OrNull(target.password), target.database.c_str(), endpoint.port,
                         OrNull(target.socket), CLIENT_MULTI_STATEMENTS) == nullptr) {
    return Failed().status;
  }
  socket_ = static_cast<int>(mysql_get_socket(handle_));
  if (aborted_) Abort();
  Status begun = CheckServer(target);
  if (begun.ok()) begun = BeginSession();
  if (!begun.ok()) {
    Disconnect();
    return begun;
  }
  return {};
}

Status Connection::CheckServer(const Target& target) {
  if (target.tls != Tls::kOff && mysql_get_ssl_cipher(handle_) == nullptr) {
    return Error{Code::kUnavailable, "mysql: TLS is required, but the server does not offer it"};
  }
  // Of several, the one that takes writes: the others are replicas.
  if (target.endpoints.size() < 2) return {};
  Result<ServerFacts> facts = ReadFacts(handle_);
  if (!facts.ok()) return Failed().status;
  facts_ = std::move(*facts);
  if (facts_.read_only) return Error{Code::kUnavailable, "mysql: the server is read-only"};
  return CheckGrants();
}

// After a switch-over the old primary is set to read-only. A user exempt from that would keep
// writing there while others write to the new one, and each of the two would grant the limit.
Status Connection::CheckGrants() {
  Answer answer = RunNow("SHOW GRANTS");
  if (!answer.status.ok()) return answer.status;
  while (!answer.results.empty() && answer.results[0].Next()) {
    if (WritesWhenReadOnly(answer.results[0].Text(0))) {
      return Error{Code::kPermissionDenied,
                   "mysql: with several hosts the user must not be able to write to a read-only "
                   "server; use one without ALL PRIVILEGES, SUPER, READ ONLY ADMIN and "
                   "CONNECTION_ADMIN on *.*"};
    }
  }
  return {};
}

Status Connection::BeginSession() {
  const Dialect dialect = mariadb_connection(handle_) ? Dialect::kMariadb : Dialect::kMysql;
  const SessionLimits& limits = options_.limits;
  if (dialect == Dialect::kMysql) {
    // There is no timeout for idle transactions, only one for idle sessions. It is short while a
    // transaction is open.
    begin_ = "SET wait_timeout=" + std::to_string(limits.idle_transaction.count()) + ";BEGIN";
    commit_ = "COMMIT;SET wait_timeout=DEFAULT";
    rollback_ = "ROLLBACK;SET wait_timeout=DEFAULT";
  }
  return RunNow(SessionSettings(dialect, limits)).status;
}

Answer Connection::RunNow(std::string_view sql) {
  if (mysql_real_query(handle_, sql.data(), sql.size()) != 0) return Failed();
  Answer answer;
  for (;;) {
    MYSQL_RES* result = mysql_store_result(handle_);
    if (result == nullptr && mysql_field_count(handle_) != 0) return Failed();
    answer.results.emplace_back(result);
    answer.affected = mysql_affected_rows(handle_);
    const int next = mysql_next_result(handle_);
    if (next > 0) return Failed();
    if (next < 0) return answer;
  }
}

Answer Connection::Failed() {
  Answer answer;
  answer.error = mysql_errno(handle_);
  answer.status = Error{CodeOf(answer.error), std::string("mysql: ") + mysql_error(handle_)};
  if (IsLost(answer.error) || EndsSession(answer.error) || socket_ < 0) {
    Disconnect();
  }
  return answer;
}

void Connection::Delay() {
  const std::chrono::microseconds longest = options_.longest_reconnect_delay;
  std::chrono::microseconds delay = options_.reconnect_delay;
  for (int i = 0; i < failures_ && delay < longest; ++i) delay *= 2;
  ++failures_;
  delay = std::min(delay, longest);
  const std::uint64_t half = static_cast<std::uint64_t>(delay.count()) / 2;
  // Random, so that a fleet does not reconnect all at once.
  retry_at_ = Clock::now() + std::chrono::microseconds(half + random_() % (half + 1));
}

void Connection::Disconnect() noexcept {
  socket_ = -1;
  if (handle_ != nullptr) mysql_close(std::exchange(handle_, nullptr));
}

void Connection::Abort() noexcept {
  aborted_ = true;
  const int socket = socket_;
  if (socket >= 0) ::shutdown(socket, SHUT_RDWR);
}

void AppendLiteral(std::string& sql, std::string_view bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  const std::size_t at = sql.size();
  sql.resize(at + 2 * bytes.size() + 3);
  char* out = sql.data() + at;
  *out++ = 'x';
  *out++ = '\'';
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    *out++ = kDigits[value >> 4];
    *out++ = kDigits[value & 15];
  }
  *out = '\'';
}

}  // namespace weir::mysql
