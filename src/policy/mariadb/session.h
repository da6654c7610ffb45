#pragma once

#include <string>

#include "drivers/mariadb/connection.h"
#include "policy/sql/session.h"

namespace weir::policy::mariadb {

/// A Session on weir::mariadb::Connection.
///
/// Thread safety: as every Session.
class MariadbSession final : public sql::Session {
 public:
  explicit MariadbSession(std::string url);

  Status Migrate() override;
  Result<std::unique_ptr<sql::Rows>> Run(std::string_view sql,
                                         std::span<const sql::Value> values) override;
  Status Begin() override;
  Status Commit() override;
  void Rollback() override;
  void Abort() noexcept override { connection_.Abort(); }

 private:
  weir::mariadb::Answer Await(const std::string& sql);
  Status End(const char* sql);

  const std::string url_;
  weir::mariadb::Connection connection_;
  std::uint64_t transaction_ = 0;  // the server session that it is open in; 0: none is
};

}  // namespace weir::policy::mariadb
