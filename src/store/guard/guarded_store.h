#pragma once

// One reactor's access to a distant store. The store may answer late or never, and the caller's
// memory is invalid once it has its answer; so each call is copied into a Call of our own, which
// the store writes to, and which lives until the store has released it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/timers.h"
#include "store/guard/guard.h"
#include "store/store.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace weir::store::guard {

/// A Store in front of a store: answers within the timeout, fails immediately while the breaker is
/// open, and answers known refusals from its cache.
///
/// Thread safety: as Store, belongs to the thread that runs `io`.
class GuardedStore final : public Store {
 public:
  /// `guard` and `io` must outlive it.
  GuardedStore(boost::asio::io_context& io, Guard& guard, std::unique_ptr<Store> inner);
  /// With timers other than a reactor's.
  GuardedStore(std::unique_ptr<Timers> timers, Guard& guard, std::unique_ptr<Store> inner);
  /// Pending calls fail with kUnavailable; callbacks run inside.
  ~GuardedStore() override;
  GuardedStore(const GuardedStore&) = delete;
  GuardedStore& operator=(const GuardedStore&) = delete;

  void Apply(std::span<Application> batch, Done done) override;
  std::string GroupOf(std::string_view key) const override {
    return inner_ == nullptr ? std::string() : inner_->GroupOf(key);
  }

  using Told = std::function<void(const Status&)>;
  /// Sends a part of the store a call that changes nothing, whatever its breaker says. Not
  /// counted.
  void Probe(std::uint32_t part, Told done);
  /// As any caller would, to any part: it counts, unless that part's breaker is open.
  void Ask(Told done);

  /// Answers everything that waits with kUnavailable, releases the store and `io`, and refuses
  /// everything from now on. For shutdown, when `io` no longer runs.
  void Close();

 private:
  struct Call;
  struct CallList;

  class Parting;

  Call& TakeCall();
  Call& MakePeek(std::uint32_t part, Told done);
  void Send(Call& call);
  void OnAnswer(Call& call);
  void OnAlarm();
  void Expire(Call& call, const Error& error);
  void Report(const Call& call);
  void Learn(const Call& call);
  void ForgetFreed(const Call& call);
  void ReleaseGranted(const Call& late);
  void GiveBack(Call& call);
  void SetAlarm();

  Guard& guard_;
  const Clock& clock_;
  std::shared_ptr<GuardMetrics> metrics_;
  // All existing calls. Before inner_, which may write to them until it is destroyed.
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<Call*> idle_;
  std::unique_ptr<CallList> waiting_;  // in the order of their deadlines
  std::size_t applications_ = 0;       // that wait, or that the store still has
  bool closed_ = false;
  std::unique_ptr<Store> inner_;
  std::unique_ptr<Timers> timers_;
  Timers::Id alarm_ = 0;
};

}  // namespace weir::store::guard
