#include "store/sql/submission.h"

#include <algorithm>
#include <utility>

namespace weir::store::sql {

Submission::Submission(std::span<Application> batch, Done done, const KeyHash& hash)
    : batch_(batch), done_(std::move(done)) {
  std::size_t bytes = 0;
  std::size_t charges = 0;
  for (const Application& application : batch) {
    charges += application.charges.size();
    for (const Charge& charge : application.charges) bytes += charge.key.size();
  }
  keys_.reserve(bytes);  // views into it are taken while it grows
  charges_.reserve(charges);
  decisions_.resize(charges);
  items_.resize(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::size_t first = charges_.size();
    for (std::size_t c = 0; c < batch[i].charges.size(); ++c) {
      const Charge& charge = batch[i].charges[c];
      const Nanos stamp = batch[i].op == Op::kSettle ? batch[i].stamps[c] : 0;
      const std::size_t at = keys_.size();
      keys_.append(charge.key);
      const std::string_view key = std::string_view(keys_).substr(at);
      const auto stripe = static_cast<std::uint32_t>(hash(key).low % kStripes);
      charges_.push_back({key, *charge.quota, charge.cost, stamp, stripe, 0});
    }
    Item& item = items_[i];
    item.op = batch[i].op;
    item.lease = batch[i].lease;
    if (item.op == Op::kCharge) item.reserved = ReservedFor(batch[i].charges);
    item.charges = std::span(charges_).subspan(first);
    item.decisions = std::span(decisions_).subspan(first, item.charges.size());
    // An application without charges is done.
    item.answered = item.charges.empty();
    item.applied = item.op != Op::kRelease && item.op != Op::kSettle;
    unanswered += item.answered ? 0 : 1;
  }
}

void Submission::Deliver() {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    Application& application = batch_[i];
    if (!item.answered) {
      application.status = Error{Code::kDeadlineExceeded, "the store did not answer in time"};
      application.applied = false;
      continue;
    }
    std::ranges::copy(item.decisions, application.decisions.begin());
    application.applied = item.applied;
    application.granted = item.granted;
    application.at = item.at;
    application.status = item.status;
  }
  done_();
}

void Submission::GiveUp(const Error& error) {
  for (Application& application : batch_) {
    application.status = error;
    application.applied = false;
  }
  // Destroyed on this thread, wherever the rest is released.
  const Done done = std::move(done_);
  done();
}

}  // namespace weir::store::sql
