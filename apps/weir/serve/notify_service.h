#pragma once

// The notification gateway of `weir serve`: which backends it has, by configuration.

#include <memory>

#include "config/config.h"
#include "drivers/sqlite/database.h"
#include "notify/api/ledger_api.h"
#include "notify/api/notify_api.h"
#include "notify/gateway.h"
#include "weir/result.h"

namespace weir::app {

/// Thread safety: for the thread that created it; its parts have threads of their own.
class NotifyService {
 public:
  /// `database` must outlive this, and be closed after Close and before this is destroyed.
  static Result<std::unique_ptr<NotifyService>> Open(const config::Config& config,
                                                     sqlite::Database& database);
  virtual ~NotifyService() = default;

  /// Finishes the messages being delivered, and answers what does not wait for `database`.
  /// Nothing may be requested afterwards, nor the API's limits used.
  virtual void Close() = 0;

  virtual notify::NotifyApi& api() noexcept = 0;
  virtual notify::LedgerApi& ledger() noexcept = 0;
  /// Whether the database of users and messages responds.
  virtual bool up() const noexcept = 0;
};

}  // namespace weir::app
