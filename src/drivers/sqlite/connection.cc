#include "drivers/sqlite/connection.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/blocking.h"
#include "base/lasting.h"

namespace weir::sqlite {
namespace {

// Statements are written in the program, so there are few; this only guards against a text that is
// assembled again for each call.
constexpr std::size_t kMaxCachedTexts = 512;

Code CodeOf(int extended) {
  if (extended == SQLITE_CONSTRAINT_UNIQUE || extended == SQLITE_CONSTRAINT_PRIMARYKEY ||
      extended == SQLITE_CONSTRAINT_ROWID) {
    return Code::kAlreadyExists;
  }
  switch (extended & 0xff) {
    case SQLITE_CONSTRAINT:
      return Code::kFailedPrecondition;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_NOMEM:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::kUnavailable;
    default:
      return Code::kInternal;
  }
}

// SQLite would create the file with the umask's mode; its -wal and -shm files take the mode of the
// file. An existing file must not be opened here: closing it would drop the locks that this
// process's connections have on it, and the next program that opens the file (a backup) would
// then think that it is the last and remove the -wal.
Status MakePrivate(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    if (errno == EEXIST) return {};
    const std::error_code error(errno, std::generic_category());
    return Error{CodeOfOpening(error), path + ": " + error.message()};
  }
  ::close(fd);
  return {};
}

/// Why the file could not be opened; kInvalidArgument if it is something else than a database, so
/// that it never can be.
Error CannotOpen(sqlite3* handle, const std::string& path, Error why) {
  std::error_code ignored;
  const bool other = (sqlite3_extended_errcode(handle) & 0xff) == SQLITE_NOTADB ||
                     std::filesystem::is_directory(path, ignored);
  return {other ? Code::kInvalidArgument : why.code, path + ": " + why.message};
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::Open(const Options& options) {
  MayBlock("opening a SQLite file");
  if (!options.read_only) {
    if (Status made = MakePrivate(options.path); !made.ok()) return made.error();
  }
  const int mode = options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(options.path.c_str(), &handle, mode | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Connection> connection(new Connection(handle));
  if (code != SQLITE_OK) {
    return CannotOpen(handle, options.path, connection->MakeError(code));
  }
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, static_cast<int>(options.busy_timeout.count()));
  const char* pragmas = options.read_only ? "PRAGMA query_only=ON; PRAGMA trusted_schema=OFF;"
                                          : "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                                            "PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF;";
  if (Status set = connection->Execute(pragmas); !set.ok()) {
    return CannotOpen(handle, options.path, set.error());
  }
  return connection;
}

Connection::~Connection() {
  for (auto& [text, statements] : idle_) {
    for (sqlite3_stmt* statement : statements) sqlite3_finalize(statement);
  }
  sqlite3_close(handle_);
}

Result<Statement> Connection::Prepare(std::string_view sql) {
  if (auto found = idle_.find(sql); found != idle_.end() && !found->second.empty()) {
    sqlite3_stmt* statement = found->second.back();
    found->second.pop_back();
    return Statement(*this, statement);
  }
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return MakeError(code);
  return Statement(*this, statement);
}

void Connection::GiveBack(sqlite3_stmt* statement) noexcept {
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  const std::string_view sql(sqlite3_sql(statement));
  auto found = idle_.find(sql);
  if (found == idle_.end()) {
    if (idle_.size() >= kMaxCachedTexts) {
      sqlite3_finalize(statement);
      return;
    }
    found = idle_.emplace(std::string(sql), std::vector<sqlite3_stmt*>()).first;
  }
  found->second.push_back(statement);
}

Status Connection::Execute(const char* sql) {
  MayBlock("a statement on a SQLite file");
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return MakeError(code);
  return {};
}

std::int64_t Connection::changes() const noexcept { return sqlite3_changes64(handle_); }

std::int64_t Connection::last_insert_rowid() const noexcept {
  return sqlite3_last_insert_rowid(handle_);
}

bool Connection::autocommit() const noexcept { return sqlite3_get_autocommit(handle_) != 0; }

Error Connection::MakeError(int code) const {
  if (handle_ == nullptr) return Error{Code::kUnavailable, "sqlite: out of memory"};
  const bool is_last = (sqlite3_errcode(handle_) & 0xff) == (code & 0xff);
  const char* text = is_last ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  const int extended = is_last ? sqlite3_extended_errcode(handle_) : code;
  return Error{CodeOf(extended), std::string("sqlite: ") + text};
}

}  // namespace weir::sqlite
