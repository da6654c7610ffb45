#pragma once

// One batch on its way through several stores, in rounds: what can be sent at the same time goes to
// all members together, and their answers decide what is sent next.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/route/routes.h"
#include "store/route/routing_store.h"
#include "store/store.h"

namespace weir::store::route {

/// Thread safety: as Store. Keeps itself alive until `done` has run.
class RoutingCall : public std::enable_shared_from_this<RoutingCall> {
 public:
  explicit RoutingCall(std::shared_ptr<RoutingStore::Shared> shared) : shared_(std::move(shared)) {}

  /// Must be called once.
  void Run(const Routes& routes, std::span<Application> batch, Done done);

 private:
  /// Charges of one application that are sent to one member together, and that it makes at the same
  /// moment.
  struct Leg {
    std::uint8_t member = 0;
    bool mirror = false;                     ///< the keys' new store, while they are being moved
    std::string group = {};                  ///< of its keys, in that store
    std::vector<std::uint32_t> places = {};  ///< of its charges in the application
    std::vector<Charge> charges = {};
    std::vector<Decision> decisions = {};
    Application answer = {};
    bool asked = false;

    bool said() const noexcept { return asked && answer.status.ok(); }
  };
  /// One application that takes more than one call to one member.
  struct Work {
    enum class Step : std::uint8_t {
      kAsking,   ///< a charge: leg after leg; everything else: all legs in parallel
      kLooking,  ///< it is refused; legs that were not sent read how their keys stand
      kDone,
    };
    Application* application = nullptr;
    std::vector<Leg> legs = {};
    std::size_t next = 0;  ///< kCharge: the leg that is asked now
    Step step = Step::kAsking;
    bool refused = false;
  };
  /// An operation of our own beside the legs.
  struct Extra {
    enum class Kind : std::uint8_t {
      kUndo,   ///< returns what was charged
      kMore,   ///< charges the new store for what a settlement added in the old one
      kLook,   ///< reads what a key has left in its old store, to level it
      kLevel,  ///< charges the new store for what it lacks
    };
    Kind kind = Kind::kUndo;
    std::uint8_t new_store = 0;  ///< kLook: the member to be levelled,
    std::int64_t left = 0;       ///< and what the key had left there, before this look
    std::string marker = {};
    std::vector<Charge> charges = {};
    std::vector<Decision> decisions = {};
    Application answer = {};
  };

  void Plan(const Routes& routes, Application& application);
  std::string GroupOf(std::uint8_t member, const Charge& charge) const;
  void Begin(Work& work);
  void Advance(Work& work);
  void AdvanceCharge(Work& work);
  void Refuse(Work& work);
  void Fail(Work& work, Status why);
  void UndoBefore(const Work& work, std::size_t leg);
  // Keys that are being moved: routing_move.cc.
  void LookToLevel(const Work& work);
  void Level(const Extra& look);
  void AskToSettle(Work& work);
  void TakeSettled(Work& work);
  void Combine(Work& work);
  void Ask(Leg& leg, Op op);
  void AskExtra(std::uint8_t member, Op op, Extra extra, std::int64_t lease = 0);
  void TakeExtras();
  void Queue(std::uint8_t member, Application& application);
  void SendRound();
  void OnAnswers();

  const std::shared_ptr<RoutingStore::Shared> shared_;
  Done done_;
  std::deque<Work> works_;
  std::deque<Extra> extras_;
  std::size_t extras_taken_ = 0;
  // What is sent to each member in this round, and where the answers go.
  std::vector<std::vector<Application>> outbox_;
  std::vector<std::vector<Application*>> origins_;
  std::size_t waiting_ = 0;
};

}  // namespace weir::store::route
