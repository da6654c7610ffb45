// Puts dead letters back into the queue: claimed, published, deleted.

#include <boost/asio/post.hpp>

#include "notify/event.h"
#include "notify/postgres/ledger_core.h"
#include "notify/postgres/sql.h"

namespace weir::notify::postgres {
namespace {

using weir::postgres::Answer;
using weir::postgres::Params;

constexpr Micros kClaimTime = kMicrosPerMinute;

Params IdsAnd(const std::vector<std::string>& ids, Micros time) {
  const std::vector<std::string_view> views(ids.begin(), ids.end());
  return std::move(Params().TextArray(views).Int(time));
}

}  // namespace

struct PostgresLedger::Core::Batch {
  Micros claim = 0;
  std::vector<Event> events;
  std::vector<Status> statuses;
  std::vector<std::string> published;
  std::vector<std::string> returned;
  Error error{Code::kUnavailable, ""};
  Done<std::vector<std::string>> done;
};

void PostgresLedger::Core::Replay(std::vector<std::string> event_ids,
                                  Done<std::vector<std::string>> done) {
  if (publisher_ == nullptr) {
    return done(Error{Code::kFailedPrecondition, "there is no broker to replay to"});
  }
  auto batch = std::make_shared<Batch>();
  batch->done = std::move(done);
  const Micros now = Now();
  batch->claim = now + kClaimTime;
  Params params = IdsAnd(event_ids, batch->claim);
  params.Int(now);
  Send(kClaimDead, std::move(params), [this, batch](const Answer& answer) {
    if (!answer.status.ok()) return batch->done(answer.status.error());
    for (int row = 0; row < answer.rows.size(); ++row) {
      Result<Event> event = DecodeEvent(answer.rows.Text(row, 1));
      if (event.ok()) {
        batch->events.push_back(std::move(*event));
      } else {
        batch->returned.emplace_back(answer.rows.Text(row, 0));
      }
    }
    Publish(batch);
  });
}

void PostgresLedger::Core::Publish(const std::shared_ptr<Batch>& batch) {
  publisher_->PublishAll(
      batch->events, [weak = weak_from_this(), batch](std::vector<Status> statuses) {
        batch->statuses = std::move(statuses);
        const auto self = weak.lock();
        if (self) self->worker_.Post([core = self.get(), batch] { core->Published(batch); });
      });
}

void PostgresLedger::Core::Published(const std::shared_ptr<Batch>& batch) {
  for (std::size_t i = 0; i < batch->events.size(); ++i) {
    const bool confirmed = batch->statuses[i].ok();
    if (!confirmed) batch->error = batch->statuses[i].error();
    (confirmed ? batch->published : batch->returned).push_back(batch->events[i].id);
  }
  if (!batch->returned.empty()) {
    SendHere(kReturnClaimed, IdsAnd(batch->returned, batch->claim), [](const Answer&) {});
  }
  if (batch->published.empty() && !batch->events.empty()) {
    return batch->done(
        Error{Code::kUnavailable, "Kafka is temporarily unavailable: " + batch->error.message});
  }
  // If this fails, the claim expires, and what the sender reports meanwhile counts.
  SendHere(kForgetClaimed, IdsAnd(batch->published, batch->claim), [batch](const Answer& answer) {
    if (!answer.status.ok()) return batch->done(answer.status.error());
    batch->done(batch->published);
  });
}

}  // namespace weir::notify::postgres
