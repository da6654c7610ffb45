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

/// The ledger beside the gateway's tables in PostgreSQL, and where senders report. A thread and a
/// connection of its own, so that what operators ask never waits for sends, nor sends for them.
///
/// A replay claims the letters for a minute, queues their messages, publishes the events, and then
/// forgets the letters. Whoever dies in between leaves them as dead letters again, and a sender
/// that was quicker than that is believed.
///
/// Thread-safe.
class PostgresLedger final : public Ledger, public DeliveryLog {
 public:
  /// `publisher` and `clock` must outlive this. Without a publisher nothing can be replayed.
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

  /// A sender's figures since it started, under a name that no other has ever had. Blocks if it is
  /// the last report of that sender; else what cannot be noted is not noted.
  void NoteSender(const std::string& sender, const SenderFigures& figures);

  /// Whether the database answered when it was last asked, which is every second at least.
  bool up() const noexcept;
  /// How many dead letters there are, as counted with a ping a few seconds ago at most; counted up
  /// to kMaxCountedDead.
  std::uint64_t dead_letters() const noexcept;
  /// What all senders that report here have done, ever; read every few seconds.
  SenderFigures senders() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace weir::notify::postgres
