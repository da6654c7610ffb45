#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "drivers/mysql/connection.h"
#include "store/sql/batch.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::store::mysql {

/// Creates the table of limits and its view, or brings them up to date; does nothing if they are.
/// Blocks.
Status Migrate(const std::string& url);

/// Limits for a session of the store whose callers wait for no longer than `timeout`.
weir::mysql::SessionLimits LimitsOf(std::chrono::milliseconds timeout);

// The statements of a transaction; see lane.cc.
/// `clock` null: the server's.
void AppendCreateRows(std::string& sql, std::span<const std::string_view> ids, const Clock* clock);
void AppendLockRows(std::string& sql, std::span<const std::string_view> ids);
/// Writes the first rows, as many as fit into a packet, but at least one. Returns the others.
std::span<const sql::Batch::Write> AppendWriteRows(std::string& sql,
                                                   std::span<const sql::Batch::Write> writes);

}  // namespace weir::store::mysql
