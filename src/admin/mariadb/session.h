#pragma once

#include <chrono>
#include <string>

#include "admin/sql/session.h"
#include "drivers/mariadb/connection.h"

namespace weir::policy::mariadb {

/// A Session on weir::mariadb::Connection.
///
/// Thread safety: as every Session.
class MariadbSession final : public sql::Session {
 public:
  MariadbSession(std::string url, std::chrono::milliseconds patience);

  Status Migrate() override;
  Result<std::unique_ptr<sql::Rows>> Run(std::string_view sql,
                                         std::span<const sql::Value> values) override;
  Result<std::unique_ptr<sql::Rows>> RunLong(std::string_view sql) override;
  Status Begin() override;
  Status Commit() override;
  void Rollback() override;
  void Abort() noexcept override {
    connection_.Abort();
    reader_.Abort();
  }

 private:
  weir::mariadb::Answer Await(const std::string& sql);
  weir::mariadb::Answer Await(weir::mariadb::Connection& connection, const std::string& sql,
                              std::chrono::milliseconds patience);
  Status End(const char* sql);

  const std::string url_;
  const std::chrono::milliseconds patience_;
  weir::mariadb::Connection connection_;
  weir::mariadb::Connection reader_;  // a connection's patience is for good: one with more
  std::uint64_t transaction_ = 0;     // the server session that it is open in; 0: none is
};

}  // namespace weir::policy::mariadb
