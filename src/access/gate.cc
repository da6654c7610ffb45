#include "access/gate.h"

#include <utility>

#include "base/hex.h"
#include "base/ip.h"
#include "telemetry/log.h"

namespace weir::access {
namespace {

using Verdict = Admission::Verdict;

constexpr std::size_t kAddresses = 65'536;
constexpr std::size_t kRemembered = 8'192;  // and as many before
constexpr auto kLineEvery = std::chrono::seconds(10);
constexpr std::string_view kRespDoor = "resp";
constexpr auto kCheckRole = static_cast<Roles>(Role::kCheck);

Engine MakeEngine(std::int64_t burst, std::chrono::nanoseconds period, const Clock& clock) {
  return Engine(*Quota::TokenBucket(burst, 1, period), {.max_keys = kAddresses, .clock = &clock});
}

/// All addresses of one client network count as one.
std::string GroupOf(std::string_view address) {
  const auto parsed = IpAddress::Parse(address);
  return parsed ? ClientKey(*parsed) : std::string(address);
}

bool IsToken(std::string_view key) noexcept { return key.starts_with("eyJ"); }

/// A key and the address group that presented it, as one text.
std::string ShownBy(std::string_view group, const config::Digest& digest) {
  std::string text(reinterpret_cast<const char*>(digest.data()), digest.size());
  return text.append(group);
}

constexpr std::string_view kKeyPrefix = "key ";

/// The name of a key without one.
std::string KeyName(const config::Digest& digest) {
  std::string name(kKeyPrefix);
  for (std::size_t i = 0; i < 4; ++i) AppendHex(name, digest[i]);
  return name;
}

}  // namespace

Gate::Gate(config::Config::Access access, std::vector<config::Digest> admin_keys, BearerOf bearer,
           const Clock& clock, std::vector<config::Digest> resp_keys)
    : access_(std::move(access)),
      admin_keys_(std::move(admin_keys)),
      resp_keys_(std::move(resp_keys)),
      bearer_(std::move(bearer)),
      has_keys_(!access_.keys.empty() || !access_.subjects.empty() || !admin_keys_.empty() ||
                static_cast<bool>(bearer_)),
      wrong_by_address_(MakeEngine(kWrongKeys, kWrongKeyEvery, clock)),
      tokens_by_address_(MakeEngine(kNewTokens, kNewTokenEvery, clock)),
      log_lines_(MakeEngine(1, kLineEvery, clock)),
      slowed_lines_(MakeEngine(1, kLineEvery, clock)) {
  open_[static_cast<std::size_t>(Operation::kPublic)] = true;
  for (const Operation operation : access_.open) open_[static_cast<std::size_t>(operation)] = true;
}

std::optional<Gate::Known> Gate::Identify(const Caller& caller,
                                          const config::Digest& digest) const {
  std::optional<Known> found;
  for (const config::Digest& known : resp_keys_) {
    const bool same = config::EqualDigests(known, digest);
    if (same && caller.door == kRespDoor) found = Known{KeyName(digest), kCheckRole};
  }
  // All are compared, in constant time: the time reveals neither the position nor the contents of
  // a key.
  for (const config::Digest& known : admin_keys_) {
    if (config::EqualDigests(known, digest)) found = Known{KeyName(digest), kEveryRole};
  }
  for (const auto& known : access_.keys) {
    if (config::EqualDigests(known.digest, digest)) found = Known{known.name, known.roles};
  }
  return found ? found : IdentifyToken(caller.key);
}

std::optional<Gate::Known> Gate::IdentifyToken(std::string_view key) const {
  if (!bearer_ || !IsToken(key)) return std::nullopt;
  auto token = bearer_(key);
  if (!token) return std::nullopt;
  return Known{std::move(token->name), token->roles, Admission::Proof::kToken};
}

Admission Gate::Admit(const Caller& caller, Operation operation) {
  if (IsOpen(operation)) return {};
  return Judge(caller, operation);
}

bool Gate::Knows(const Caller& caller, Operation operation) {
  return Judge(caller, operation).admitted();
}

Admission Gate::Judge(const Caller& caller, Operation operation) {
  std::optional<Known> known;
  if (!caller.key.empty()) {
    const config::Digest digest = config::Sha256(caller.key);
    const std::string group = GroupOf(caller.address);
    std::string shown = ShownBy(group, digest);
    const Decision patience = wrong_by_address_.Peek(group);
    if (!patience.allowed() && !HasShown(shown)) {
      // Tokens are renewed every few minutes, and their signatures cannot be guessed.
      const bool token = bearer_ && IsToken(caller.key);
      if (token && tokens_by_address_.TryAcquire(group).allowed()) {
        known = IdentifyToken(caller.key);
      }
      if (!known) {
        return {Verdict::kSlowedDown,
                {},
                std::chrono::ceil<std::chrono::seconds>(patience.retry_after)};
      }
    } else {
      known = Identify(caller, digest);
    }
    if (!known && caller.quiet) return {.verdict = Verdict::kKeyWrong};
    if (!known) return OnWrongKey(caller);
    Remember(std::move(shown));
  } else if (!caller.subject.empty()) {
    for (const auto& one : access_.subjects) {
      if (one.name != caller.subject) continue;
      known = Known{one.name, one.roles, Admission::Proof::kCertificate};
    }
  }
  if (!known) return {.verdict = Verdict::kKeyMissing};
  const Verdict verdict =
      MayDo(known->roles, operation) ? Verdict::kAdmitted : Verdict::kRoleMissing;
  return {verdict, std::move(known->name), std::chrono::seconds(0), known->proof};
}

bool Gate::HasShown(const std::string& shown) const {
  const std::lock_guard lock(mutex_);
  return shown_.contains(shown) || shown_before_.contains(shown);
}

void Gate::Remember(std::string shown) {
  // Usually a caller's next request comes on the same thread with the same key.
  struct Last {
    const Gate* gate = nullptr;
    std::uint64_t cleared = 0;
    std::string shown;
  };
  thread_local Last last;
  const std::uint64_t cleared = cleared_.load(std::memory_order_relaxed);
  if (last.gate == this && last.cleared == cleared && last.shown == shown) return;
  last = {this, cleared, shown};
  const std::lock_guard lock(mutex_);
  if (shown_.size() >= kRemembered) {
    // Tokens fill it, which are new every few minutes. Keys that are in use are put in again.
    shown_before_ = std::exchange(shown_, {});
    cleared_.fetch_add(1, std::memory_order_relaxed);
  }
  shown_.insert(std::move(shown));
}

Admission Gate::OnWrongKey(const Caller& caller) {
  const std::uint64_t so_far = wrong_.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::string group = GroupOf(caller.address);
  const Decision patience = wrong_by_address_.TryAcquire(group);
  // An address has lines of its own for being slowed down: the one about its first wrong key must
  // not keep that out of the log.
  const bool slowed = patience.remaining == 0;
  if ((slowed ? slowed_lines_ : log_lines_).TryAcquire(group).allowed()) {
    telemetry::Log(telemetry::Level::kWarn, "wrong key",
                   {{"address", caller.address},
                    {"door", caller.door},
                    {"wrong_keys", static_cast<std::int64_t>(so_far)},
                    {"slowed_down", slowed ? "yes" : "no"}});
  }
  return {.verdict = Verdict::kKeyWrong};
}

std::string Admission::Holder() const {
  if (proof == Proof::kToken) return "token " + name;
  if (proof == Proof::kCertificate) return "certificate " + name;
  return name.empty() || name.starts_with(kKeyPrefix) ? name : std::string(kKeyPrefix) + name;
}

std::string Explain(const Admission& admission, Operation operation) {
  switch (admission.verdict) {
    case Verdict::kAdmitted:
      return "";
    case Verdict::kKeyMissing:
      return "send an API key in X-API-Key or Authorization: Bearer";
    case Verdict::kKeyWrong:
      return "unknown API key";
    case Verdict::kRoleMissing:
      return "this needs the role " + std::string(RoleNeeded(operation)) +
             ", which your key, token or certificate does not have; see docs/reference/access.md";
    case Verdict::kSlowedDown:
      return "too many wrong keys from this address; try again in " +
             std::to_string(admission.retry_after.count()) + " s";
  }
  return "";
}

}  // namespace weir::access
