// Derives decisions from what the script found. States that fit in a reply come as they were before
// the charge, and the C++ step decides again on a copy; a log comes as the numbers its step needs.

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "algorithm/algorithms.h"
#include "algorithm/answer.h"
#include "algorithm/bytes.h"
#include "algorithm/lease.h"
#include "algorithm/settle.h"
#include "algorithm/state.h"
#include "algorithm/time_range.h"
#include "base/number.h"
#include "store/redis/call.h"

namespace weir::store::redis {
namespace {

using weir::redis::Reply;

Error NotUnderstood() {
  return {Code::kInternal,
          "redis: a key contains data that this version of weir does not write; reset it"};
}

/// A log as its charge found it: the packed '<BdI4i4I4i4' of the script.
struct LogFound {
  enum class Kind : std::uint8_t { kRefused = 0, kGranted = 1, kFull = 2, kReleased = 3 };
  static constexpr std::size_t kBytes = 25;

  Kind kind;
  std::int64_t used;  // before the charge
  Nanos time;         // granted: the grant's (its lease's end); else the newest charge's
  Nanos then;         // when the entry that must leave was added (a lease: when it ends)
};

bool Read(std::string_view bytes, LogFound& found) {
  if (bytes.size() != LogFound::kBytes) return false;
  const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto used = algorithm::Load<double>(at + 1);
  if (*at > static_cast<std::uint8_t>(LogFound::Kind::kReleased)) return false;
  if (!(used >= 0 && used <= static_cast<double>(kMaxLimit)))
    return false;  // nor if it is not a number
  found.kind = static_cast<LogFound::Kind>(*at);
  found.used = static_cast<std::int64_t>(used);
  found.time = algorithm::Load<Nanos>(at + 9);
  found.then = algorithm::Load<Nanos>(at + 17);
  return true;
}

/// True if the step may have made a charge at `time`, so that adding a window cannot overflow.
bool Possible(const Quota& quota, Nanos time) {
  const bool leases = algorithm::Of(quota).leases;
  const Nanos ahead = leases ? kMaxWindow.count() : 0;
  return time >= algorithm::kEarliest && time <= algorithm::kLatest + ahead + kMaxLimit;
}

Decision Decide(const Quota& quota, const LogFound& found, Nanos now, std::int64_t cost) {
  const bool leases = algorithm::Of(quota).leases;
  const Nanos lasts = leases ? 0 : quota.window().count();  // a lease's time is already its end
  if (found.kind == LogFound::Kind::kGranted) {
    Decision decision = algorithm::Answer(quota, found.used + cost, 0);
    decision.reset_after = algorithm::Until(found.time + lasts, now);
    if (leases) decision.lease = found.time;
    return decision;
  }
  Decision decision = algorithm::Answer(quota, found.used, cost);
  if (found.used > 0) decision.reset_after = algorithm::Until(found.time + lasts, now);
  if (found.kind == LogFound::Kind::kFull) decision.verdict = Verdict::kLimited;
  if (decision.verdict == Verdict::kLimited) {
    decision.retry_after = algorithm::Until(found.then + lasts, now);
  }
  return decision;
}

/// The standing of a log that was overdrawn.
Decision StandingOf(const Quota& quota, const LogFound& found, Nanos now) {
  const bool leases = quota.algorithm() == Algorithm::kConcurrency;
  const Nanos lasts = leases ? 0 : quota.window().count();
  Decision decision =
      leases ? algorithm::Answer(quota, found.used, 0) : algorithm::Standing(quota, found.used);
  if (found.used > 0) decision.reset_after = algorithm::Until(found.time + lasts, now);
  if (!decision.allowed()) decision.retry_after = algorithm::Until(found.then + lasts, now);
  return decision;
}

class Decoder {
 public:
  Decoder(const Reply& reply, Nanos now) : reply_(reply), now_(now) {}

  void Fill(Application& application) {
    application.applied = true;
    application.status = {};
    if (application.op == Op::kSettle) return FillSettled(application);
    for (std::size_t i = 0; i < application.charges.size(); ++i) {
      const Charge& charge = application.charges[i];
      if (application.op == Op::kReset) {
        application.decisions[i] = algorithm::Peek(*charge.quota, {}, now_, 0);
      } else if (application.op == Op::kLease || application.op == Op::kReturn) {
        if (!FillLease(application, charge)) {
          application.status = NotUnderstood();
          application.applied = false;
        }
        return;
      } else if (!FillOne(application, charge, application.decisions[i])) {
        application.status = NotUnderstood();
        application.applied = false;
      }
    }
  }

 private:
  void FillSettled(Application& application) {
    bool read = true;
    for (std::size_t i = 0; i < application.charges.size(); ++i) {
      read = FillSettledOne(application, i) && read;
    }
    if (read) return;
    application.status = NotUnderstood();
    application.applied = false;
  }

  bool FillSettledOne(Application& application, std::size_t i) {
    if (next_ >= reply_.elements.size()) return false;
    const std::string& bytes = reply_.elements[next_++].text;
    const Quota& quota = *application.charges[i].quota;
    Decision& decision = application.decisions[i];
    if (algorithm::Of(quota).logged) {
      LogFound found{};
      if (!Read(bytes, found) || !Possible(quota, found.time) || !Possible(quota, found.then)) {
        return false;
      }
      if (i == 0) application.applied = found.kind == LogFound::Kind::kReleased;
      decision = i == 0 ? Decide(quota, found, now_, 0) : StandingOf(quota, found, now_);
      return true;
    }
    algorithm::State state;
    if (i == 0 || !Take(quota, bytes, state)) return false;
    decision = application.applied ? algorithm::Settle(quota, state, now_, application.stamps[i],
                                                       application.charges[i].cost)
                                   : algorithm::Overdraw(quota, state, now_, 0);
    return true;
  }

  /// A copy of a state, with room for a charge.
  bool Take(const Quota& quota, std::string_view bytes, algorithm::State& state) {
    state_.assign(bytes.begin(), bytes.end());
    if (!algorithm::Valid(quota.algorithm(), state_)) return false;
    const auto size = static_cast<std::uint32_t>(state_.size());
    state = {state_.data(), size, size};
    state_.resize(std::max<std::size_t>(size, algorithm::CapacityForReserve(quota, state)));
    state = {state_.data(), size, static_cast<std::uint32_t>(state_.size())};
    return true;
  }

  bool FillOne(Application& application, const Charge& charge, Decision& decision) {
    if (next_ >= reply_.elements.size()) return false;
    const std::string& bytes = reply_.elements[next_++].text;
    const Quota& quota = *charge.quota;
    const bool look = application.op == Op::kRefund || application.op == Op::kRelease;
    if (algorithm::Of(quota).logged) {
      LogFound found{};
      const std::int64_t cost = look ? 0 : charge.cost;
      if (!Read(bytes, found) || !Possible(quota, found.time) || !Possible(quota, found.then)) {
        return false;
      }
      if (found.kind == LogFound::Kind::kGranted && cost > kMaxLimit) return false;
      decision = application.op == Op::kOverdraw ? StandingOf(quota, found, now_)
                                                 : Decide(quota, found, now_, cost);
      if (application.op == Op::kRelease) {
        application.applied = found.kind == LogFound::Kind::kReleased;
      }
    } else {
      if (!Repeat(application, charge, bytes, decision)) return false;
      if (application.op == Op::kRelease) application.applied = false;
    }
    if (application.op == Op::kCharge) {
      application.applied &= decision.allowed();
      application.at = now_;
    }
    return true;
  }

  // The grant follows from what the script found: it tries costs in the same order.
  bool FillLease(Application& application, const Charge& charge) {
    if (next_ >= reply_.elements.size()) return false;
    const std::string& bytes = reply_.elements[next_++].text;
    LeaseGrant grant;
    const bool read = algorithm::Of(*charge.quota).logged
                          ? LeaseOfLog(application.op, charge, bytes, grant)
                          : LeaseAgain(application, charge, bytes, grant);
    if (!read) return false;
    application.decisions[0] = grant.decision;
    if (application.op == Op::kReturn) return true;
    application.granted = grant.granted;
    application.at = algorithm::ChargedAt(*charge.quota, now_, grant.decision);
    application.applied = grant.granted > 0;
    return true;
  }

  bool LeaseOfLog(Op op, const Charge& charge, std::string_view bytes, LeaseGrant& grant) const {
    const Quota& quota = *charge.quota;
    LogFound found{};
    if (!Read(bytes, found) || !Possible(quota, found.time) || !Possible(quota, found.then)) {
      return false;
    }
    std::int64_t cost =
        op == Op::kReturn ? 0 : std::clamp<std::int64_t>(charge.cost, 0, quota.limit());
    if (found.kind == LogFound::Kind::kGranted) {
      while (cost > quota.limit() - found.used && cost > 0) cost /= 2;
      if (cost == 0) return false;
      grant.granted = cost;
    } else {
      cost = std::min<std::int64_t>(cost, 1);
    }
    grant.decision = Decide(quota, found, now_, cost);
    return true;
  }

  bool LeaseAgain(const Application& application, const Charge& charge, std::string_view bytes,
                  LeaseGrant& grant) {
    const Quota& quota = *charge.quota;
    algorithm::State state;
    if (!Take(quota, bytes, state)) return false;
    if (application.op == Op::kLease) {
      grant = algorithm::Lease(quota, state, now_, charge.cost);
    } else {
      grant.decision = algorithm::Return(quota, state, now_, application.lease, charge.cost);
    }
    return true;
  }

  // Repeats the step on a copy of the state that the script found.
  bool Repeat(const Application& application, const Charge& charge, std::string_view bytes,
              Decision& decision) {
    const Op op = application.op;
    const Quota& quota = *charge.quota;
    algorithm::State state;
    if (!Take(quota, bytes, state)) return false;
    if (op == Op::kCharge) {
      const Nanos reserved = ReservedFor(application.charges);
      decision = reserved > 0 ? algorithm::Reserve(quota, state, now_, charge.cost, reserved)
                              : algorithm::Acquire(quota, state, now_, charge.cost);
    } else if (op == Op::kOverdraw) {
      decision = algorithm::Overdraw(quota, state, now_, charge.cost);
    } else if (op == Op::kRefund) {
      decision = algorithm::Refund(quota, state, now_, charge.cost);
    } else {
      decision = algorithm::Peek(quota, state, now_, op == Op::kPeek ? charge.cost : 0);
    }
    return true;
  }

  const Reply& reply_;
  const Nanos now_;
  std::size_t next_ = 1;
  std::vector<std::uint8_t> state_;
};

bool ReadNumber(const std::string& text, std::int64_t& number) {
  const auto read = ParseNumber<std::int64_t>(text);
  if (read) number = *read;
  return read.has_value();
}

}  // namespace

Decoded Decode(const Reply& reply, std::span<Application* const> applications) {
  if (!reply.is_array(1)) return {.status = NotUnderstood()};
  const std::string& first = reply.elements[0].text;
  if (first == "stale" && reply.elements.size() == 3) {
    std::int64_t seconds = 0;
    std::int64_t micros = 0;
    constexpr std::int64_t kMaxSeconds = std::int64_t{1} << 32;
    if (!ReadNumber(reply.elements[1].text, seconds) || seconds < 0 || seconds > kMaxSeconds ||
        !ReadNumber(reply.elements[2].text, micros) || micros < 0 || micros >= 1'000'000) {
      return {.status = NotUnderstood()};
    }
    return {.status = {}, .now = seconds * 1'000'000'000 + micros * 1'000, .stale = true};
  }
  if (first.size() != sizeof(Nanos)) return {.status = NotUnderstood()};
  Decoded decoded;
  std::memcpy(&decoded.now, first.data(), sizeof decoded.now);
  Decoder decoder(reply, decoded.now);
  for (Application* application : applications) decoder.Fill(*application);
  return decoded;
}

Decoded DecodeSingle(const Reply& reply, Application& application, Nanos reference) {
  if (reply.kind != Reply::Kind::kText) return {.status = NotUnderstood()};
  if (reply.text.empty()) return {.status = {}, .declined = true};
  double since = 0;
  if (reply.text.size() < sizeof since) return {.status = NotUnderstood()};
  std::memcpy(&since, reply.text.data(), sizeof since);
  constexpr double kFarthest = 2251799813685248;  // the script declines larger values
  if (!(since >= -kFarthest && since <= kFarthest)) return {.status = NotUnderstood()};
  Decoded decoded;
  decoded.now = algorithm::ClampTime(reference + static_cast<Nanos>(since));
  Reply found;
  found.elements.resize(2);
  found.elements[1].text = reply.text.substr(sizeof since);
  Decoder(found, decoded.now).Fill(application);
  return decoded;
}

}  // namespace weir::store::redis
