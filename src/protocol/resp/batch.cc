#include "protocol/resp/batch.h"

#include <algorithm>
#include <span>
#include <utility>

#include "limiter/request_span.h"
#include "store/wire/answer.h"
#include "telemetry/tracer.h"

namespace weir::resp {
namespace {

constexpr std::string_view kPrefix = "cl|";
constexpr std::string_view kDoor = "resp";

// The error prefix that clients see; Redis clients turn it into an exception's type.
std::string_view ReplyCode(Code code) noexcept {
  switch (code) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
      return "TRYAGAIN";
    case Code::kPermissionDenied:
      return "NOPERM";
    case Code::kUnauthenticated:
      return "NOAUTH";
    default:
      return "ERR";
  }
}

bool IsCharged(const Decision& decision) noexcept {
  return decision.remaining < decision.limit || decision.reset_after.count() > 0;
}

/// Also true if only a policy on trial was charged, and if that could not be determined.
bool IsCharged(const limiter::Check& look) noexcept {
  return !look.status.ok() || IsCharged(look.decision) ||
         std::any_of(
             look.verdicts.begin(), look.verdicts.end(),
             [](const limiter::PolicyVerdict& verdict) { return IsCharged(verdict.decision); });
}

}  // namespace

Batch::Batch() {
  charges_.reserve(kMaxQuestions);
  quotas_.reserve(kMaxQuestions);
}

Batch::~Batch() = default;

void Batch::AddThrottle(std::string_view key, const Rate& rate, const Quota& quota,
                        std::int64_t cost, ThrottleStyle style) {
  if (quotas_.empty() || &quota != &quotas_.back()) {
    quotas_.push_back(quota);
    last_rate_ = rate;
  }
  replies_.push_back({Kind::kThrottle, {}, {}, style, static_cast<std::uint32_t>(charges_.size())});
  keys_.append(kPrefix).append(key);
  key_ends_.push_back(static_cast<std::uint32_t>(keys_.size()));
  charges_.push_back({{}, cost, &quotas_.back()});
}

limiter::Check& Batch::AddCheck(store::Op op, std::string_view key, std::int64_t cost,
                                std::int64_t lease, CheckReply reply, Protocol protocol) {
  if (checks_.empty()) {
    checks_.resize(kMaxQuestions + 1);  // the last command may need two
  }
  const std::size_t i = checks_used_++;
  limiter::Check& check = checks_[i];
  check.Reset(op, {.door = kDoor});
  check.request.key = key;
  check.request.cost = cost;
  check.lease = lease;
  replies_.push_back({Kind::kCheck, reply, protocol, {}, static_cast<std::uint32_t>(i)});
  return check;
}

void Batch::AddReset(std::string_view key, std::string who, Protocol protocol) {
  AddCheck(store::Op::kPeek, key, 0, 0, CheckReply::kOk, protocol);
  replies_.pop_back();  // it needs no reply of its own
  resets_.push_back({checks_used_, std::move(who)});
  AddCheck(store::Op::kReset, key, 1, 0, CheckReply::kOk, protocol);
}

void Batch::TellResets(const ToldReset& tell) const {
  for (const Reset& reset : resets_) {
    const limiter::Check& check = checks_[reset.check];
    // A store that did not answer in time may still have done it.
    const bool late = !check.status.ok() && check.status.error().code == Code::kDeadlineExceeded;
    if ((check.status.ok() || late) && IsCharged(checks_[reset.check - 1])) {
      tell(reset.who, check.request.key, check.status);
    }
  }
}

void Batch::AddApply(std::unique_ptr<store::wire::Question> question) {
  replies_.push_back({Kind::kApply, {}, {}, {}, static_cast<std::uint32_t>(questions_.size())});
  applied_ += std::max<std::size_t>(question->charges(), 1);
  questions_.push_back(std::move(question));
}

void Batch::EndText() {
  const auto end = static_cast<std::uint32_t>(text_.size());
  if (!replies_.empty() && replies_.back().kind == Kind::kText) {
    replies_.back().index = end;
  } else {
    replies_.push_back({Kind::kText, {}, {}, {}, end});
  }
}

std::string_view Batch::Keep(std::string_view bytes) {
  return *kept_.emplace_back(std::make_unique<std::string>(bytes));
}

void Batch::Submit(limiter::Limiter& limiter, std::function<void()> done) {
  done_ = std::move(done);
  tracer_ = limiter.tracer();
  if (tracer_ != nullptr) BeginTraces(*tracer_);
  const std::size_t throttles = charges_.size();
  if (decisions_.size() < throttles) {
    decisions_.resize(throttles);
    applications_.resize(throttles);
    for (std::size_t i = 0; i < throttles; ++i) {
      applications_[i].charges = {charges_.data() + i, 1};
      applications_[i].decisions = {&decisions_[i], 1};
    }
  }
  // The text of the keys no longer moves from here on.
  std::size_t begin = 0;
  for (std::size_t i = 0; i < throttles; ++i) {
    charges_[i].key = {keys_.data() + begin, key_ends_[i] - begin};
    begin = key_ends_[i];
  }
  outstanding_ = 1 + (throttles > 0 ? 1 : 0) + static_cast<int>(questions_.size());
  if (throttles > 0) {
    limiter.Apply({applications_.data(), throttles}, [this] { Finish(); });
  }
  for (const auto& question : questions_) {
    limiter.Apply(question->applications(), [this] { Finish(); });
  }
  // Must be last: what checks point into is freed after its `done`, unless it is kept.
  if (checks_used_ == 0) return Finish();
  limiter.Decide({checks_.data(), checks_used_}, [this, &limiter] {
    if (outstanding_ > 1) decided_ = limiter.Keep();
    Finish();
  });
}

/// Redis clients have no field for a trace of theirs: each traced command begins one.
void Batch::BeginTraces(telemetry::Tracer& tracer) {
  submitted_at_ = SystemClock::Get().Now();
  for (limiter::Check& check : std::span(checks_.data(), checks_used_)) {
    check.origin.trace = tracer.Begin({}, submitted_at_);
  }
}

void Batch::RecordTraces(telemetry::Tracer& tracer) {
  for (const limiter::Check& check : std::span(checks_.data(), checks_used_)) {
    if (!check.origin.trace.sampled) continue;
    telemetry::Span span;
    span.context = check.origin.trace;
    span.name = "WEIR.*";
    span.start = submitted_at_;
    span.end = SystemClock::Get().Now();
    span.Add("weir.door", kDoor);
    limiter::RecordRequest(&tracer, span, {&check, 1});
  }
}

void Batch::Finish() {
  if (--outstanding_ == 0) {
    if (tracer_ != nullptr) RecordTraces(*tracer_);
    // Moved out first: `done` may reuse this batch.
    const auto done = std::exchange(done_, nullptr);
    done();
  }
}

void Batch::WriteReplies(Buffer& out) {
  std::size_t written = 0;
  for (const Reply& reply : replies_) {
    switch (reply.kind) {
      case Kind::kThrottle:
        WriteThrottle(reply, out);
        break;
      case Kind::kCheck:
        WriteCheck(reply, out);
        break;
      case Kind::kApply:
        ReplyWriter(out, Protocol::kResp2)
            .Bulk(store::wire::WriteAnswer(questions_[reply.index]->applications()));
        break;
      case Kind::kText:
        out.Append(text_.view().substr(written, reply.index - written));
        written = reply.index;
        break;
    }
  }
}

void Batch::WriteThrottle(const Reply& reply, Buffer& out) {
  store::Application& application = applications_[reply.index];
  if (application.status.ok()) [[likely]] {
    Decision& decision = decisions_[reply.index];
    if (decision.verdict == Verdict::kNever && reply.style == ThrottleStyle::kCrab) [[unlikely]] {
      const store::Charge& charge = charges_[reply.index];
      decision.retry_after = CrabRetryOfNever(decision, charge.cost, *charge.quota);
    }
    WriteThrottleReply(decision, reply.style, out);
    return;
  }
  const Error& error = application.status.error();
  ReplyWriter(out, Protocol::kResp2).Error(ReplyCode(error.code), error.message);
  application.status = {};
}

void Batch::WriteCheck(const Reply& reply, Buffer& out) const {
  const limiter::Check& check = checks_[reply.index];
  ReplyWriter writer(out, reply.protocol);
  if (!check.status.ok()) {
    writer.Error(ReplyCode(check.status.error().code), check.status.error().message);
    return;
  }
  if (reply.check == CheckReply::kOk) {
    writer.Ok();
    return;
  }
  if (reply.check == CheckReply::kReleased) {
    writer.Integer(check.applied ? 1 : 0);
    return;
  }
  const Decision& decision = check.decision;
  const bool names = reply.protocol == Protocol::kResp3;
  const auto name = [&](std::string_view text) {
    if (names) writer.Simple(text);
  };
  const bool more = reply.check != CheckReply::kDecision;
  const std::size_t fields = more ? 9 : 8;
  names ? writer.Map(fields) : writer.Array(fields);
  name("limited");
  writer.Integer(decision.allowed() ? 0 : 1);
  name("limit");
  writer.Integer(decision.limit);
  name("remaining");
  writer.Integer(decision.remaining);
  name("retry_after");
  writer.Integer(RetrySeconds(decision));
  name("reset_after");
  writer.Integer(CeilSeconds(decision.reset_after));
  name("policy");
  check.policy.empty() ? writer.Null() : writer.Bulk(check.policy);
  name("lease");
  writer.Integer(decision.lease);
  name("estimated");
  writer.Integer(check.estimated ? 1 : 0);
  if (reply.check == CheckReply::kReserved) {
    name("reservation");
    check.reservation.empty() ? writer.Null() : writer.Bulk(check.reservation);
  } else if (reply.check == CheckReply::kSettled) {
    name("settled");
    writer.Integer(check.applied ? 1 : 0);
  }
}

void Batch::Clear() {
  replies_.clear();
  charges_.clear();
  keys_.clear();
  key_ends_.clear();
  quotas_.clear();
  kept_.clear();
  decided_.reset();
  questions_.clear();
  resets_.clear();
  applied_ = 0;
  text_.Clear();
  text_.Shrink(64 * 1024);
  for (std::size_t i = 0; i < checks_used_; ++i) {
    checks_[i].status = {};
  }
  checks_used_ = 0;
}

}  // namespace weir::resp
