#include "store/guard/guarded_store.h"

#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "store/guard/asio_timers.h"
#include "store/guard/guarded_call.h"

namespace weir::store::guard {
namespace {

/// Calls kept for reuse; more are freed.
constexpr std::size_t kMaxIdle = 4096;

Error Away() { return {Code::kUnavailable, "the store is down (circuit breaker open)"}; }

void Fail(std::span<Application> batch, const Error& error) {
  for (Application& application : batch) application.status = error;
}

}  // namespace

GuardedStore::GuardedStore(boost::asio::io_context& io, Guard& guard, std::unique_ptr<Store> inner)
    : GuardedStore(std::make_unique<AsioTimers>(io), guard, std::move(inner)) {}

GuardedStore::GuardedStore(std::unique_ptr<Timers> timers, Guard& guard,
                           std::unique_ptr<Store> inner)
    : guard_(guard),
      clock_(guard.clock()),
      metrics_(guard.AddMetrics()),
      waiting_(std::make_unique<CallList>()),
      inner_(std::move(inner)),
      timers_(std::move(timers)) {}

GuardedStore::~GuardedStore() { Close(); }

void GuardedStore::Close() {
  if (closed_) return;
  closed_ = true;
  timers_->Cancel(alarm_);
  timers_.reset();
  while (waiting_->first != nullptr) {
    Expire(*waiting_->first, {Code::kUnavailable, "the service is shutting down"});
  }
  inner_.reset();
}

/// The calls that one Apply becomes: one for each part of the store, so that none waits for another
/// part's answer longer than necessary.
class GuardedStore::Parting {
 public:
  explicit Parting(GuardedStore& store) : store_(store) {}

  void Add(const Application& application, std::uint32_t place, std::uint32_t part) {
    Call*& call = calls_[part];
    if (call == nullptr) {
      call = &store_.TakeCall();
      call->part = part;
      used_ |= std::uint64_t{1} << part;
    }
    call->Add(application, place);
  }

  /// The last call to be answered runs `done`.
  void Send(std::span<Application> batch, Done done, Nanos now, bool cached) {
    if (used_ == 0) return done();
    if (const int count = std::popcount(used_); count > 1) {
      done = [left = std::make_shared<int>(count), last = std::move(done)] {
        if (--*left == 0) last();
      };
    }
    for (std::uint64_t rest = used_; rest != 0; rest &= rest - 1) {
      Call& call = *calls_[static_cast<std::size_t>(std::countr_zero(rest))];
      call.Point();
      call.theirs = batch;
      call.done = done;
      call.sent = now;
      if (cached) {
        const DenyCache& cache = store_.guard_.cache();
        for (const Charge& charge : call.charges) call.marks.push_back(cache.MarkOf(charge.key));
      }
      store_.Send(call);
    }
  }

 private:
  GuardedStore& store_;
  std::array<Call*, kMaxParts> calls_{};
  std::uint64_t used_ = 0;
};

void GuardedStore::Apply(std::span<Application> batch, Done done) {
  const Nanos now = clock_.Now();
  DenyCache& cache = guard_.cache();
  const bool cached = cache.on();
  Parting parting(*this);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (cached && cache.TryAnswer(batch[i], now)) continue;
    const std::uint32_t part = inner_ == nullptr ? 0 : inner_->PartOf(batch[i]);
    if (!closed_ && !guard_.breaker(part).closed()) {
      batch[i].status = Away();
      metrics_->short_cut.Add();
      continue;
    }
    parting.Add(batch[i], static_cast<std::uint32_t>(i), part);
  }
  parting.Send(batch, std::move(done), now, cached);
}

GuardedStore::Call& GuardedStore::MakePeek(std::uint32_t part, Told done) {
  static const Quota kQuota = *Quota::TokenBucket(1, 1);
  const std::string key = inner_ == nullptr ? "" : inner_->ProbeKey(part);
  const Charge charge{key, 1, &kQuota};
  Application application;
  application.op = Op::kPeek;
  application.charges = {&charge, 1};
  Call& call = TakeCall();
  call.Add(application, 0);
  call.Point();
  call.part = part;
  call.probe_done = std::move(done);
  call.sent = clock_.Now();
  return call;
}

void GuardedStore::Probe(std::uint32_t part, Told done) {
  Call& call = MakePeek(part, std::move(done));
  call.counts = false;
  Send(call);
}

void GuardedStore::Ask(Told done) {
  Call& call = MakePeek(0, std::move(done));
  if (inner_ != nullptr) call.part = inner_->PartOf(call.ours[0]);
  Send(call);
}

GuardedStore::Call& GuardedStore::TakeCall() {
  if (idle_.empty()) {
    Call& made = *calls_.emplace_back(std::make_unique<Call>());
    made.number = calls_.size() - 1;
    return made;
  }
  Call* call = idle_.back();
  idle_.pop_back();
  return *call;
}

void GuardedStore::GiveBack(Call& call) {
  applications_ -= call.ours.size();
  call.Clear();
  if (idle_.size() < kMaxIdle) {
    idle_.push_back(&call);
    return;
  }
  const std::size_t number = call.number;
  calls_[number].swap(calls_.back());
  calls_[number]->number = number;
  calls_.pop_back();
}

void GuardedStore::Send(Call& call) {
  applications_ += call.ours.size();
  call.period = guard_.breaker(call.part).period();
  waiting_->Append(call);
  std::optional<Error> refusal;
  if (closed_) {
    refusal = Error{Code::kUnavailable, "the service is shutting down"};
  } else if (call.counts && !guard_.breaker(call.part).closed()) {
    refusal = Away();
    metrics_->short_cut.Add(call.ours.size());
  } else if (applications_ > guard_.options().max_waiting) {
    refusal = Error{Code::kResourceExhausted, "too many checks are waiting for the store"};
  }
  if (refusal) {
    Expire(call, *refusal);
    GiveBack(call);
    return;
  }
  metrics_->calls.Add();
  SetAlarm();
  inner_->Apply(call.ours, [this, &call] { OnAnswer(call); });
}

void GuardedStore::OnAnswer(Call& call) {
  if (call.told) {
    metrics_->late_answers.Add();
    ForgetFreed(call);
    ReleaseGranted(call);
    GiveBack(call);
    return;
  }
  waiting_->Remove(call);
  call.told = true;
  metrics_->latency.Observe(clock_.Now() - call.sent);
  Report(call);
  if (call.probe_done) {
    const auto done = std::move(call.probe_done);
    const Status status = call.ours.front().status;
    GiveBack(call);
    return done(status);
  }
  Learn(call);
  ForgetFreed(call);
  call.CopyAnswers();
  const Done done = std::move(call.done);
  GiveBack(call);
  done();
}

/// Records what the answer says about the store. Applications that cannot be decided count for
/// nothing: a client may send many, and they must neither open the breaker nor keep it closed.
void GuardedStore::Report(const Call& call) {
  std::size_t decided = 0;
  const Error* failure = nullptr;
  for (const Application& application : call.ours) {
    if (application.status.ok()) {
      ++decided;
      continue;
    }
    const Error& error = application.status.error();
    // A probe can always be decided.
    const Fault fault = call.probe_done ? Fault::kStore : FaultOf(error.code);
    if (fault == Fault::kQuestion) {
      metrics_->undecided.Add();
      guard_.NoteUndecided(
          error, application.charges.empty() ? std::string_view() : application.charges[0].key);
    } else {
      metrics_->failures.Add();
      if (fault == Fault::kStore) failure = &error;
    }
  }
  const bool failed = failure != nullptr && decided == 0;
  if (decided > 0) guard_.NoteSuccess(call.part);
  if (failed) guard_.NoteError(call.part, *failure);
  if (!call.counts) return;
  if (decided > 0) guard_.breaker(call.part).Succeeded(call.period);
  if (failed) guard_.breaker(call.part).Failed(call.period);
}

void GuardedStore::Learn(const Call& call) {
  if (call.marks.empty()) return;
  for (const Application& application : call.ours) {
    if (application.op != Op::kCharge || !application.status.ok() || application.applied) continue;
    const std::size_t first = call.FirstCharge(application);
    guard_.cache().Keep(
        application, std::span(call.marks).subspan(first, application.charges.size()), call.sent);
  }
}

/// Refunds, resets and settlements free permits, even those whose outcome is unknown.
void GuardedStore::ForgetFreed(const Call& call) {
  std::vector<std::uint64_t> hashes;
  for (const Application& application : call.ours) {
    if (application.op != Op::kRefund && application.op != Op::kReset &&
        application.op != Op::kReturn && application.op != Op::kSettle) {
      continue;
    }
    for (const Charge& charge : application.charges) hashes.push_back(HashOf(charge.key));
  }
  if (!hashes.empty()) guard_.Forget(hashes);
}

/// Permits in flight from a late answer have no owner: the caller does not know their names, and
/// they would be unavailable until their leases end. Whatever the breaker says, the store has just
/// answered.
void GuardedStore::ReleaseGranted(const Call& late) {
  Call* releases = nullptr;
  for (const Application& application : late.ours) {
    const bool grants = application.op == Op::kCharge || application.op == Op::kLease;
    if (!grants || !application.status.ok() || !application.applied) continue;
    for (std::size_t i = 0; i < application.charges.size(); ++i) {
      if (application.decisions[i].lease == 0) continue;
      if (releases == nullptr) releases = &TakeCall();
      Application release;
      release.op = Op::kRelease;
      release.lease = application.decisions[i].lease;
      release.charges = application.charges.subspan(i, 1);
      releases->Add(release, 0);
    }
  }
  if (releases == nullptr) return;
  releases->Point();
  releases->part = late.part;
  releases->counts = false;
  releases->probe_done = [](const Status&) {};  // sent once, whatever the result
  releases->sent = clock_.Now();
  Send(*releases);
}

/// Answers in the store's place. The call itself stays until the store releases it.
void GuardedStore::Expire(Call& call, const Error& error) {
  waiting_->Remove(call);
  call.told = true;
  if (call.probe_done) {
    const auto done = std::move(call.probe_done);
    return done(error);
  }
  for (const std::uint32_t place : call.places) Fail(call.theirs.subspan(place, 1), error);
  const Done done = std::move(call.done);
  done();
}

void GuardedStore::SetAlarm() {
  if (closed_ || alarm_ != 0 || waiting_->first == nullptr) return;
  const Nanos due =
      waiting_->first->sent + std::chrono::nanoseconds(guard_.options().timeout).count();
  const std::chrono::nanoseconds wait(std::max<Nanos>(0, due - clock_.Now()));
  alarm_ = timers_->After(wait, [this] {
    alarm_ = 0;
    OnAlarm();
  });
}

void GuardedStore::OnAlarm() {
  const Nanos timeout = std::chrono::nanoseconds(guard_.options().timeout).count();
  const Error error{Code::kDeadlineExceeded, "the store did not answer within " +
                                                 std::to_string(guard_.options().timeout.count()) +
                                                 " ms"};
  const Nanos now = clock_.Now();
  while (waiting_->first != nullptr && waiting_->first->sent + timeout <= now) {
    Call& call = *waiting_->first;
    metrics_->timeouts.Add(call.ours.size());
    metrics_->latency.Observe(timeout);
    guard_.NoteError(call.part, error);
    if (call.counts) guard_.breaker(call.part).Failed(call.period);
    ForgetFreed(call);
    Expire(call, error);
  }
  SetAlarm();
}

}  // namespace weir::store::guard
