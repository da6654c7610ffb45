#pragma once

#include <chrono>
#include <string>

#include "admin/sql/session.h"
#include "drivers/mysql/connection.h"

namespace weir::policy::mysql {

/// A Session on weir::mysql::Connection.
///
/// Thread safety: see Session.
class MysqlSession final : public sql::Session {
 public:
  MysqlSession(std::string url, std::chrono::milliseconds patience);

  Status Migrate() override;
  Result<std::unique_ptr<sql::Rows>> Run(std::string_view sql,
                                         std::span<const sql::Value> values) override;
  Result<std::unique_ptr<sql::Rows>> RunLong(std::string_view sql) override;
  Status Begin() override;
  void Abort() noexcept override {
    connection_.Abort();
    reader_.Abort();
  }

 private:
  weir::mysql::Answer Await(const std::string& sql);
  weir::mysql::Answer Await(weir::mysql::Connection& connection, const std::string& sql,
                            std::chrono::milliseconds patience);
  Status End(bool commit) override;

  const std::string url_;
  const std::chrono::milliseconds patience_;
  weir::mysql::Connection connection_;
  weir::mysql::Connection reader_;  // with a longer timeout, which is fixed per connection
  std::uint64_t transaction_ = 0;   // the server session of the open transaction; 0: none is open
};

}  // namespace weir::policy::mysql
