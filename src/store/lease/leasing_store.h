#pragma once

// Stands between a limiter and a guarded store. Keys of leased policies that are checked often are
// decided here, from permits that were taken from the store in advance; everything else is passed
// on. What may be spent when, and why no limit is exceeded by it: docs/design/leases.md.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/timers.h"
#include "store/held_here.h"
#include "store/lease/holding.h"
#include "store/lease/leases.h"
#include "store/lease/permit_stock.h"
#include "store/store.h"

namespace weir::store::lease {

/// Thread safety: as Store, belongs to one thread, that of its timers and of the inner store.
class LeasingStore final : public Store {
 public:
  /// `leases` must outlive it.
  LeasingStore(std::unique_ptr<Timers> timers, Leases& leases, std::unique_ptr<Store> inner);
  /// Permits still held are lost to all nodes for the rest of their term: call Drain first.
  ~LeasingStore() override;
  LeasingStore(const LeasingStore&) = delete;
  LeasingStore& operator=(const LeasingStore&) = delete;

  void Apply(std::span<Application> batch, Done done) override;
  std::uint32_t PartOf(const Application& application) const override {
    return inner_->PartOf(application);
  }
  std::string ProbeKey(std::uint32_t part) const override { return inner_->ProbeKey(part); }

  /// Returns all permits that are held, and takes no more: from now on every charge goes to the
  /// store.
  void Drain();

  /// The number of the last grant, by which a region's nodes name what they were lent from it.
  std::uint64_t last_grant() const noexcept { return grants_; }

  /// What this store holds of a bucket now.
  HeldHere Find(std::string_view key) const;

  /// Units of rates that this node counts on now, of all keys.
  std::int64_t CountUnits() const;

 private:
  struct Ask;
  struct Call;
  struct PermitAsk;
  struct ShareAsk;
  struct Split;
  /// A check of one charge that waits for permits of its key.
  struct Waiting {
    Application* application;
    Done done;
    Nanos since;
  };
  struct Queue {
    std::int64_t cost = 0;  // of all
    std::vector<Waiting> all;
  };
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };
  using Holdings = std::unordered_map<std::string, Holding, TextHash, std::equal_to<>>;
  using Stocks = std::unordered_map<std::string, PermitStock, TextHash, std::equal_to<>>;
  void ApplyFrom(std::size_t first, std::span<Application> batch, Nanos now, Done done);
  bool DecideNext(Application& application, Nanos now);
  bool Charge(Application& application, Nanos now);
  bool Meet(Application& application, std::size_t place, Holdings::value_type& entry, Nanos now);
  bool Refund(Application& application, Nanos now);
  void RefundHere(const Taken& refund, const Application& application, Nanos now);
  bool Answer(Application& application, bool applied);
  std::unique_ptr<Split> Part(Application& application);
  void Join(const Split& split, Application& application, Nanos now);
  void ReleaseGranted(const Split& split, const Application& application);
  bool Lasts(const Taken& taken, const Application& application, Nanos now);
  void Settle(const Taken& taken, const Application& application, bool spent, Nanos now);
  void PassOn(std::unique_ptr<Call> call);
  void OnAnswer(Call& call);
  void Forget(const Application& application);
  Holdings::value_type* Watch(const store::Charge& charge, const algorithm::LeaseTerms& terms,
                              Nanos now);
  Holdings::value_type* FindLately(std::string_view key);
  /// For the metrics, which only this thread writes: avoids the cost of an atomic addition.
  void CountHeld(std::int64_t change) noexcept {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    metrics_->held.store(metrics_->held.load(kRelaxed) + change, kRelaxed);
  }
  // Permits taken in advance: leasing_asks.cc.
  void AskSoon(std::string_view key);
  void AskNow();
  void AskNow(std::string_view key);
  void AskAhead(Holdings::value_type& entry, Nanos now, Nanos rest = 0);
  void OnGrant(Ask& ask);
  void GiveBack(std::string_view key, Holding& holding, Nanos now);
  void SendReturn(std::string_view key, const algorithm::LeaseTerms& terms, Nanos at,
                  std::int64_t count);
  void Send(std::unique_ptr<Ask> ask);
  // Checks that wait for permits that were requested: leasing_waits.cc.
  bool Wait(Application& application, const Holding& holding, Nanos now);
  Done TellWaiting(std::span<Application> batch, std::span<const std::uint32_t> places, bool more,
                   Done done);
  void EndWaits(std::string_view key, bool none_left);
  void EndWaits(std::span<const Waiting> all, bool none_left);
  void EndWait(const Waiting& waiting, bool none_left);
  void EndLateWaits(Nanos now);
  void EndAllWaits();
  // Shares of rates: leasing_shares.cc.
  bool MeetFromShare(Holding& holding, const store::Charge& charge, std::size_t place, bool alone,
                     Nanos now);
  void NoteRefusals(const Application& application, Nanos now);
  void AskForShare(Holdings::value_type& entry, Nanos now);
  void OnShare(ShareAsk& ask);
  void ReleaseShares(std::string_view key, Holding& holding);
  void SendRelease(std::string_view key, const algorithm::LeaseTerms& terms, std::int64_t name);
  Nanos PauseFor(Holding& holding, Nanos now);
  // A region's store: leasing_region.cc.
  bool Serve(Application& application, Nanos now);
  bool Lend(Application& application, const algorithm::LeaseTerms& terms, Nanos now);
  bool TakeBack(Application& application, Nanos now);
  // Concurrency quotas: leasing_permits.cc.
  bool HandOut(Application& application, std::size_t place, Nanos now);
  Stocks::value_type* WatchStock(const store::Charge& charge, const algorithm::LeaseTerms& terms,
                                 Nanos now);
  void AskForPermits(Stocks::value_type& entry, Nanos now);
  void OnPermits(PermitAsk& ask);
  void SettlePermit(const Taken& taken, const Application& application, bool spent, Nanos now);
  void GiveBackPermits(Stocks::value_type& entry);
  void ReleasePermits(std::string_view key, const algorithm::LeaseTerms& terms,
                      std::span<const std::int64_t> names);
  void TickStocks(Nanos now);
  /// True if no more keys can be watched.
  bool Full() const noexcept {
    return holdings_.size() + stocks_.size() >= leases_.options().max_keys;
  }
  void SetTick();
  void Tick();
  Nanos Pause(Nanos term);

  Leases& leases_;
  const Clock& clock_;
  const bool lends_;
  const Flaws flaws_;
  std::shared_ptr<LeaseMetrics> metrics_;
  std::minstd_rand random_;
  Holdings holdings_;
  std::array<Holdings::value_type*, 64> lately_{};  // some of holdings_; see FindLately
  Stocks stocks_;
  std::vector<Taken> taken_;      // for the application that is being decided
  std::vector<std::string> due_;  // keys for which more will be requested soon
  bool waits_ = false;            // the application that is being decided waits for permits
  std::unordered_map<std::string, Queue, TextHash, std::equal_to<>> waiting_;
  std::uint64_t grants_;
  bool draining_ = false;
  std::unique_ptr<Store> inner_;
  std::unique_ptr<Timers> timers_;
  Timers::Id tick_ = 0;
  Timers::Id asking_soon_ = 0;
  // Calls of `inner_` that outlive this store learn from it that the store no longer exists.
  std::shared_ptr<LeasingStore*> self_;
};

}  // namespace weir::store::lease
