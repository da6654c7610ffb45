// The figures of senders: each reports its own, and the gateway reads the sum.

#include <utility>

#include "notify/postgres/ledger_core.h"
#include "notify/postgres/sql.h"

namespace weir::notify::postgres {
namespace {

using FiguresAnswer = weir::postgres::Answer;
using weir::postgres::Params;
using weir::postgres::Rows;

constexpr Micros kRunningFor = Micros{15} * 1'000'000;  // since the last report
constexpr Micros kGoneAfter = Micros{7} * 24 * 60 * kMicrosPerMinute;

SenderFigures ReadFigures(const Rows& rows) {
  return {.delivered = rows.Int(0, 0),
          .dead = rows.Int(0, 1),
          .duplicate = rows.Int(0, 2),
          .delayed = rows.Int(0, 3),
          .dropped = rows.Int(0, 4),
          .retries = rows.Int(0, 5),
          .timed = rows.Int(0, 6),
          .took = rows.Int(0, 7),
          .lag = rows.Int(0, 8),
          .senders = rows.Int(0, 9)};
}

}  // namespace

void PostgresLedger::NoteSender(const std::string& sender, const SenderFigures& figures) {
  Params params;
  params.Text(sender).Int(figures.delivered).Int(figures.dead).Int(figures.duplicate);
  params.Int(figures.delayed).Int(figures.dropped).Int(figures.retries).Int(figures.timed);
  params.Int(figures.took).Int(figures.lag).Int(figures.senders);
  if (figures.senders > 0) {
    return core_->Send(kNoteSender, std::move(params), [](const FiguresAnswer&) {});
  }
  static_cast<void>(core_->SendAndWait(kNoteSender, std::move(params)));
}

SenderFigures PostgresLedger::senders() const { return core_->senders(); }

SenderFigures PostgresLedger::Core::senders() const {
  const std::lock_guard lock(senders_mutex_);
  return senders_;
}

void PostgresLedger::Core::SumSenders() {
  SendHere(kFoldSenders, std::move(Params().Int(kGoneAfter)), [](const FiguresAnswer&) {});
  SendHere(kSumSenders, std::move(Params().Int(kRunningFor)), [this](const FiguresAnswer& answer) {
    if (!answer.status.ok()) return;  // keeps the last figures
    const std::lock_guard lock(senders_mutex_);
    senders_ = ReadFigures(answer.rows);
  });
}

}  // namespace weir::notify::postgres
