#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "drivers/postgres/connection.h"
#include "notify/event.h"
#include "notify/gateway.h"
#include "notify/limit_store.h"
#include "notify/postgres/gateway.h"
#include "notify/publisher.h"
#include "notify/tally.h"

namespace weir::notify::postgres {

/// One request of a batch.
struct Ask {
  SendRequest request;
  Gateway::Done<SendAnswer> done;
};

/// What all transactions of a gateway share.
struct TransactionParts {
  const Options options;
  Publisher& publisher;
  const Clock& clock;
  /// Runs a task on the connections' thread, or drops it once they are closed. Any thread.
  std::function<void(std::function<void()>)> post = {};
  /// The connections are closing: nothing may be sent any more.
  bool closed = false;
};

/// Decides a batch of requests in one transaction of `connection`, which it alone uses.
///
/// Thread safety: belongs to the connection's thread.
class Transaction : public std::enable_shared_from_this<Transaction> {
 public:
  /// `ended` is called before the requests are answered: then the connection and users are free.
  Transaction(std::shared_ptr<const TransactionParts> parts, weir::postgres::Connection& connection,
              std::vector<Ask> asks, std::function<void()> ended);

  void Start();

 private:
  enum class State { kUndecided, kPublished, kConfirmed, kAnswered, kRepeat };
  struct Item {
    Ask ask;
    std::string channel_key = {};  // the row that limits the request's channel, if there is one
    State state = State::kUndecided;
    std::string event_id = {};
    std::size_t first = 0;  // kRepeat: the request of this batch with the same key
    Result<SendAnswer> answer = SendAnswer{};
  };

  void Lock();
  void Take(weir::postgres::Answer answer);
  void ReadRows(const weir::postgres::Rows& rows);
  void ReadKeys(const weir::postgres::Rows& rows);
  void Decide();
  bool DecideByKey(std::size_t index);
  /// nullopt: the user is unknown.
  std::optional<Places> PlacesOf(const Item& item);
  void Publish();
  void Published(const std::vector<Status>& statuses);
  void Write();
  void WriteKeys();
  void WriteMessages();
  void Commit(const weir::postgres::Answer& answer);
  void Settle();
  /// Nothing was counted: rolls back the transaction and answers the remaining requests with
  /// `error`.
  void Abandon(const Error& error);
  void Undo();
  void End();

  const std::shared_ptr<const TransactionParts> parts_;
  weir::postgres::Connection& connection_;
  std::vector<Item> items_;
  std::function<void()> ended_;

  std::unordered_map<std::string_view, Tally> tallies_;
  std::unordered_map<std::string, KeyedSend> known_keys_;
  std::unordered_map<std::string, std::size_t> batch_keys_;
  std::vector<std::size_t> to_publish_;
  std::vector<Event> events_;
  Micros now_ = 0;
  std::int64_t backend_ = 0;
  std::int64_t rows_to_write_ = 0;
  std::size_t outstanding_ = 0;
  std::optional<Error> error_;
};

/// Reads rows of kLockRows and similar statements.
UserLimit ReadLimit(const weir::postgres::Rows& rows, int row);
/// Reads rows of kFindKeys.
KeyedSend ReadKeyed(const weir::postgres::Rows& rows, int row);
/// The parameters $1 to $8 of kPutKeys.
weir::postgres::Params KeyParams(const std::vector<KeyedSend>& keyed, Micros now);

/// The parameters $1 to $5 of kPutMessages.
weir::postgres::Params MessageParams(const std::vector<Accepted>& accepted);

/// "PostgreSQL is temporarily unavailable: …"
Error Unavailable(const weir::postgres::Answer& answer);

}  // namespace weir::notify::postgres
