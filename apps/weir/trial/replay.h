#pragma once

// Policies tried on past traffic: every request of an access log is decided by the real limiter,
// on a memory store and a clock that the log advances.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ip.h"
#include "limiter/policy_limiter.h"
#include "policy/policy_set.h"
#include "protocol/access_log/record.h"
#include "weir/engine.h"
#include "weir/result.h"

namespace weir::app {

/// Counts over time in bounded memory: when there are too many steps, pairs are merged.
///
/// Not thread-safe.
class Timeline {
 public:
  struct Step {
    std::uint64_t requests = 0;
    std::uint64_t limited = 0;    ///< by the first set of policies
    std::uint64_t limited_2 = 0;  ///< by the second
  };
  static constexpr std::size_t kMaxSteps = 4096;

  void Add(Nanos at, bool limited, bool limited_2);

  Nanos width() const noexcept { return width_; }
  /// By number: a step begins at number × width().
  const std::map<std::int64_t, Step>& steps() const noexcept { return steps_; }
  /// The same data in at most `most` steps.
  Timeline Coarsened(std::size_t most) const;

 private:
  void Widen();

  Nanos width_ = 1'000'000'000;
  std::map<std::int64_t, Step> steps_;
};

/// Who would have asked about the requests of the log. GET /v1/auth and the proxy know the client:
/// policies for exactly its address or user apply as well, and IPv6 clients are networks.
enum class Asker : std::uint8_t { kAuth, kProxy, kCheck };

/// What a service's configuration sets besides its policies.
struct ReplayRules {
  Asker asker = Asker::kAuth;
  policy::Definition default_policy = policy::DefaultPolicy();
  bool default_applies = true;  ///< to requests that no policy applies to
  bool deny_unmatched = false;
  bool lenient = false;
  IpGrouping grouping = {};
};

/// One set of policies on trial.
///
/// Not thread-safe.
class Trial {
 public:
  struct LimitedKey {
    std::string key;
    std::uint64_t count = 0;
    Nanos first = 0;
    Nanos last = 0;
  };
  /// Keys beyond this many are counted together.
  static constexpr std::size_t kMaxLimitedKeys = 500'000;

  /// Fails if a policy file is invalid. An empty domain: that of requests without one.
  static Result<std::unique_ptr<Trial>> Open(const std::vector<std::string>& files,
                                             const ReplayRules& rules, std::size_t max_keys,
                                             const std::string& domain);
  ~Trial();

  /// Decides requests that arrived at the same moment, in order. True where it would be limited.
  void Decide(Nanos at, const std::vector<access_log::Record>& records, std::vector<bool>& limited);
  /// Of the last Decide: the policy that limited request `index`; empty if none did.
  const std::string& LimitedBy(std::size_t index) const { return limited_by_[index]; }

  limiter::CheckCounts Checks() const;
  std::vector<limiter::PolicyCounts> Policies() const;
  /// The keys that were limited most often.
  std::vector<LimitedKey> TopLimited(std::size_t n) const;
  std::size_t limited_keys() const noexcept { return limited_.size(); }
  /// Requests that no policy applied to, and those that only the default policy applied to.
  std::uint64_t unmatched() const noexcept { return unmatched_; }
  std::uint64_t by_default() const noexcept { return by_default_; }
  /// The domain of the requests, and how many domains there are.
  const std::string& domain() const noexcept;
  std::size_t domains() const;
  /// Whether a policy matches on this entry of a request.
  bool MatchesOn(std::string_view entry) const;
  std::uint64_t evicted_active() const;

 private:
  struct World;
  struct Times {
    std::uint64_t count = 0;
    Nanos first = 0;
    Nanos last = 0;
  };

  explicit Trial(std::unique_ptr<World> world);
  void Describe(std::size_t index, const access_log::Record& record);
  void Count(std::size_t index, const limiter::Check& check, Nanos at);
  void Note(std::string_view key, Nanos at);

  std::unique_ptr<World> world_;
  std::unordered_map<std::string, Times> limited_;
  std::vector<std::string> limited_by_;
  std::uint64_t unmatched_ = 0;
  std::uint64_t by_default_ = 0;
};

/// A request that two sets of policies treat differently.
struct Difference {
  std::uint64_t line = 0;  ///< of the log, from 1
  Nanos at = 0;
  std::string method = {};
  std::string route = {};
  std::string ip = {};
  std::string user = {};
  bool newly_limited = false;  ///< otherwise newly allowed
  std::string policy = {};     ///< the policy that refuses it, in the set that does
};

struct ReplayOptions {
  std::string log;
  access_log::Format format = access_log::Format::kAuto;
  std::vector<std::string> candidate;
  std::vector<std::string> current;  ///< empty: no comparison
  std::string domain;
  ReplayRules rules;
  std::size_t max_differences = 20;  ///< the first ones, kept by name
  std::size_t max_keys = 2'000'000;
  /// Called periodically with the part of the log that has been read, 0 to 1.
  std::function<void(double part, std::uint64_t lines)> on_progress;
};

struct ReplayResult {
  std::uint64_t lines = 0;
  std::uint64_t malformed = 0;
  ReplayRules rules;
  std::vector<std::string> examples;  ///< of malformed lines: "line 3: …"
  /// Requests without an address, a user, a host in the log.
  std::uint64_t without_ip = 0;
  std::uint64_t without_user = 0;
  std::uint64_t without_host = 0;
  std::uint64_t out_of_order = 0;  ///< older than a line before them; decided at that line's time
  access_log::Format format = access_log::Format::kAuto;
  Nanos from = 0;
  Nanos to = 0;
  std::unique_ptr<Trial> candidate;
  std::unique_ptr<Trial> current;  ///< null: no comparison
  std::uint64_t newly_limited = 0;
  std::uint64_t newly_allowed = 0;
  std::vector<Difference> differences = {};  ///< the first of them
  Timeline timeline;
};

Result<ReplayResult> Replay(const ReplayOptions& options);

/// The result as JSON, as tables, and as a picture.
std::string ReplayJson(const ReplayResult& result, std::size_t top);
std::string ReplayText(const ReplayResult& result, std::size_t top);
std::string ReplaySvg(const ReplayResult& result);

}  // namespace weir::app
