#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "drivers/sqlite/connection.h"
#include "notify/event.h"
#include "notify/notify.h"
#include "notify/tally.h"

namespace weir::notify::sqlite {

/// The row of a user; nullopt if there is none.
Result<std::optional<UserLimit>> ReadLimit(weir::sqlite::Connection& connection,
                                           std::string_view user_id);

/// Requests that are decided in one job of the writer: each user's row is read once and written
/// once, and events go to the outbox in the same transaction as the counts.
///
/// Not thread-safe: for the writer's thread.
class Batch {
 public:
  Batch(weir::sqlite::Connection& connection, Micros now) : connection_(connection), now_(now) {}

  /// Answers in the order of the requests. `room`: how many more events the outbox accepts.
  Result<std::vector<Result<SendAnswer>>> Decide(std::span<const SendRequest* const> requests,
                                                 std::size_t room);
  /// Events that were put into the outbox.
  std::size_t stored() const noexcept { return stored_; }

 private:
  Result<Tally*> TallyOf(const std::string& user_id);
  Result<SendAnswer> DecideOne(const SendRequest& request);
  Result<std::optional<SendAnswer>> FindKey(const SendRequest& request);
  Status PutKey(const SendRequest& request, const SendAnswer& answer);
  Status PutEvent(const Event& event);
  Status WriteCounts();

  weir::sqlite::Connection& connection_;
  const Micros now_;
  std::size_t stored_ = 0;
  std::unordered_map<std::string, std::optional<Tally>> tallies_;
};

}  // namespace weir::notify::sqlite
