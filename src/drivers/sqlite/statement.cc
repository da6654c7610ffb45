#include "drivers/sqlite/statement.h"

#include <sqlite3.h>

#include <utility>

#include "base/blocking.h"
#include "drivers/sqlite/connection.h"

namespace weir::sqlite {

Statement::Statement(Statement&& other) noexcept
    : owner_(other.owner_),
      handle_(std::exchange(other.handle_, nullptr)),
      bind_error_(other.bind_error_) {}

Statement::~Statement() {
  if (handle_ != nullptr) owner_->GiveBack(handle_);
}

void Statement::Note(int code) noexcept {
  if (code != SQLITE_OK && bind_error_ == SQLITE_OK) bind_error_ = code;
}

Statement& Statement::Bind(int index, std::int64_t value) {
  Note(sqlite3_bind_int64(handle_, index, value));
  return *this;
}

Statement& Statement::Bind(int index, std::string_view text) {
  // A null pointer would bind NULL, but an empty view is an empty text.
  const char* data = text.data() == nullptr ? "" : text.data();
  Note(sqlite3_bind_text64(handle_, index, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::BindNull(int index) {
  Note(sqlite3_bind_null(handle_, index));
  return *this;
}

Result<bool> Statement::Step() {
  MayBlock("a statement on a SQLite file");
  if (bind_error_ != SQLITE_OK) return owner_->MakeError(std::exchange(bind_error_, SQLITE_OK));
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  Error error = owner_->MakeError(code);
  sqlite3_reset(handle_);
  return error;
}

Status Statement::Run() {
  if (Status done = ForEach([](const Statement&) {}); !done.ok()) return done;
  Reset();
  return {};
}

void Statement::Reset() { sqlite3_reset(handle_); }

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}

std::int64_t Statement::Int(int column) const { return sqlite3_column_int64(handle_, column); }

std::string_view Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))};
}

}  // namespace weir::sqlite
