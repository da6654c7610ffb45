#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "notify/gateway.h"
#include "notify/limit_store.h"
#include "notify/publisher.h"
#include "weir/clock.h"

namespace weir::notify::postgres {

struct Options {
  std::string url = {};         ///< postgres://…
  std::size_t connections = 4;  ///< concurrent transactions
  std::size_t max_waiting = 20'000;
  std::size_t max_batch = 256;  ///< requests in one transaction
  std::chrono::milliseconds lock_timeout{2000};
  std::chrono::milliseconds statement_timeout{4000};
  /// A request that waits longer than this for its turn is refused.
  std::chrono::milliseconds max_wait{5000};
};

/// Limits and counts in PostgreSQL: the rows of all users of a batch are locked in one order, each
/// request is decided in the order of arrival, the events of those allowed are published, and
/// those confirmed are counted, all in one transaction. During it, later requests of
/// its users wait, and those of other users go into concurrent transactions.
///
/// The tables are created on first use; until the server can be reached, all calls are answered
/// with kUnavailable. Any number of processes may share a database.
class PostgresGateway final : public Gateway, public LimitStore {
 public:
  /// `publisher` and `clock` must outlive this.
  PostgresGateway(Options options, Publisher& publisher, const Clock& clock);
  /// Answers pending calls with kUnavailable; the publisher must have no more events of this
  /// gateway, or be destroyed after it.
  ~PostgresGateway() override;

  void Configure(UserLimit limit, Gateway::Done<UserLimit> done) override;
  void Adjust(UserLimit limit, Gateway::Done<UserLimit> done) override;
  void Ensure(UserLimit limit, Gateway::Done<bool> done) override;
  void Remove(std::string user_id, Gateway::Done<bool> done) override;
  void Send(SendRequest request, Gateway::Done<SendAnswer> done) override;
  void Find(std::string user_id, Gateway::Done<std::optional<UserLimit>> done) override;
  std::size_t waiting() const override;

  void Load(std::vector<std::string> users, Micros now,
            LimitStore::Done<std::vector<std::optional<UserLimit>>> done) override;
  void Add(std::vector<CountDelta> deltas, std::vector<KeyedSend> keyed,
           std::vector<Accepted> accepted, std::function<void(Status)> done) override;
  void FindKey(std::string user_id, std::string key, Micros now,
               LimitStore::Done<std::optional<KeyedSend>> done) override;

 private:
  class Worker;
  std::shared_ptr<Worker> worker_;
};

}  // namespace weir::notify::postgres
