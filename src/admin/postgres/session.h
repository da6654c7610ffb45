#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "admin/sql/session.h"
#include "drivers/postgres/channel.h"
#include "drivers/postgres/connection.h"

namespace weir::policy::postgres {

/// A Session on weir::postgres::Connection, whose loop it runs while it waits.
///
/// Thread safety: see Session.
class PostgresSession final : public sql::Session {
 public:
  PostgresSession(std::string url, std::chrono::milliseconds patience);

  Status Migrate() override;
  Result<std::unique_ptr<sql::Rows>> Run(std::string_view sql,
                                         std::span<const sql::Value> values) override;
  Result<std::unique_ptr<sql::Rows>> RunLong(std::string_view sql) override;
  Status Begin() override;
  Status Announce() override;
  void Listen(std::function<void()> heard) override;
  bool listening() const noexcept override { return listening_; }
  void Abort() noexcept override;

 private:
  using Duration = std::chrono::milliseconds;

  weir::postgres::Answer Await(const std::string& sql, const weir::postgres::Params& params,
                               Duration patience);
  weir::postgres::Answer AwaitOnce(const std::string& sql, const weir::postgres::Params& params,
                                   Duration patience);
  Status End(bool commit) override;

  const std::string url_;
  const Duration patience_;
  boost::asio::io_context io_{1};
  weir::postgres::Connection connection_;
  std::uint64_t transaction_ = 0;  // the server session of the open transaction; 0: none is open
  std::atomic<bool> listening_{false};
  std::atomic<bool> aborted_{false};
  std::unique_ptr<Channel> channel_;
};

}  // namespace weir::policy::postgres
