#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "notify/delivery_log.h"
#include "notify/ledger.h"
#include "notify/publisher.h"
#include "notify/sender_figures.h"
#include "weir/clock.h"

namespace weir::notify::postgres {

inline constexpr std::int64_t kMaxCountedDead = 100'000;

struct LedgerOptions {
  std::string url = {};  ///< postgres://…
  std::chrono::milliseconds statement_timeout{4000};
  std::chrono::milliseconds ping_interval{1000};
  bool counts = false;  ///< keep dead_letters() and senders() up to date
};

/// The ledger in tables next to the gateway's in PostgreSQL, where senders also report. It has its
/// own thread and connection, so that operators' requests and sends never wait for each other.
///
/// A replay claims the letters for a minute, queues their messages, publishes the events, and then
/// deletes the letters. If the process dies in between, they are dead letters again, and what a
/// sender has reported before that counts.
///
/// Thread-safe.
class PostgresLedger final : public Ledger, public DeliveryLog {
 public:
  /// `publisher` and `clock` must outlive this. Without a publisher, nothing can be replayed.
  PostgresLedger(LedgerOptions options, Publisher* publisher, const Clock& clock);
  ~PostgresLedger() override;

  void Find(std::string event_id, Done<std::optional<Message>> done) override;
  void List(MessageQuery query, Done<std::vector<Message>> done) override;
  void ListDead(DeadQuery query, Done<std::vector<DeadMessage>> done) override;
  void FindDead(std::string event_id, Done<std::optional<DeadMessage>> done) override;
  void Replay(std::vector<std::string> event_ids, Done<std::vector<std::string>> done) override;
  void Drop(std::vector<std::string> event_ids, Done<std::vector<std::string>> done) override;
  void ListUsers(std::string after, std::size_t limit, Done<std::vector<UserLimit>> done) override;
  void PutPreferences(Preferences preferences, Done<Preferences> done) override;
  void FindPreferences(std::string user_id, Done<std::optional<Preferences>> done) override;

  Status Report(std::span<const Delivery> ends) override;
  void NoteFailure(const Delivery& failure) override;
  Result<std::unordered_map<std::string, Preferences>> PreferencesOf(
      std::span<const std::string> users) override;
  Result<std::unordered_set<std::string>> Settled(std::span<const std::string> event_ids) override;
  Result<Due> TakeDue(Micros now, std::size_t max) override;
  Status Forget(std::span<const std::string> event_ids, Micros lease) override;

  /// Stores a sender's figures since it started, under a name that no other sender has ever had.
  /// Blocks for the sender's last report; otherwise failures are ignored.
  void NoteSender(const std::string& sender, const SenderFigures& figures);

  /// Whether the database answered the last call; there is one at least every second.
  bool up() const noexcept;
  /// The number of dead letters, as counted at most a few seconds ago; counted up
  /// to kMaxCountedDead.
  std::uint64_t dead_letters() const noexcept;
  /// The sum of all senders that have ever reported here; read every few seconds.
  SenderFigures senders() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace weir::notify::postgres
