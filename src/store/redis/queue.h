#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "store/pending.h"
#include "store/redis/call.h"
#include "store/redis/script.h"
#include "weir/clock.h"

namespace weir::store::redis {

/// Applications that are sent together.
struct Load {
  std::vector<Pending> pending;
  std::vector<Application*> applications;
  int references = 0;           ///< how many were tried
  std::optional<Shape> single;  ///< the script that is tried first
  bool combined = false;        ///< of several applications, or of one without a script for one
  Nanos counted_from = 0;       ///< single: the reference
};

/// The applications that wait for a lane (see route.h), and how many of its calls are in flight.
///
/// While there are enough calls left, a single charge is sent by itself. Beyond that, waiting
/// applications are combined. If checks may wait for others, they are held until that time is over.
/// Not thread-safe.
class Queue {
 public:
  /// The most calls of a lane in flight.
  static constexpr std::size_t kDepth = 4;
  /// This many held checks are sent call by call, in one write: the server reads them together, and
  /// the scripts for one check cost it less than one call for all (./dev bench stores).
  static constexpr std::size_t kApart = 16;

  void Add(Pending pending) {
    charges_ += pending.application->charges.size();
    waiting_.push_back(std::move(pending));
  }
  /// Waiting applications, and those that are added, are sent no earlier than with Release, or as
  /// soon as they fill a call. `mark` is for Release.
  void Hold(std::uint64_t mark) noexcept {
    held_ = true;
    mark_ = mark;
  }
  bool held() const noexcept { return held_ && charges_ < kMaxChargesOfCall; }
  void Release() noexcept;
  /// As above, for applications held with this mark, unless they have been sent.
  void Release(std::uint64_t mark) noexcept {
    if (mark == mark_) Release();
  }
  /// The contents of the next call; null if it has to wait. `depth`: how many calls that combine
  /// several applications may be in flight, 1 to kDepth.
  std::shared_ptr<Load> Next(std::size_t depth);
  /// A load that Next returned was answered.
  void Answered(const Load& load);

  const std::deque<Pending>& waiting() const noexcept { return waiting_; }
  bool idle() const noexcept { return in_flight_ == 0 && waiting_.empty(); }

 private:
  bool HasSingle(std::size_t depth) const;

  std::deque<Pending> waiting_;
  std::size_t charges_ = 0;  // of waiting_
  bool held_ = false;
  std::size_t apart_ = 0;  // how many of waiting_ were held, and go call by call
  std::uint64_t mark_ = 0;
  std::size_t in_flight_ = 0;
  std::size_t combined_ = 0;    // of those in flight
  const Load* last_ = nullptr;  // the latest that was sent, while it is in flight
};

/// The queues of all lanes that have work. Lanes that go to the same server share its depth: with a
/// few calls in flight a server is never idle, and the fewer there are, the more checks each of
/// them carries. Not thread-safe.
class Queues {
 public:
  using Lane = std::uint32_t;
  /// `server`: where calls of the lane go.
  Queue& Of(Lane lane, std::uint32_t server);
  Queue* Find(Lane lane);
  /// How many combined calls of the lane may be in flight.
  std::size_t DepthOf(Lane lane) const;
  void EraseIfIdle(Lane lane);
  std::vector<Lane> Lanes() const;
  /// Removes and returns all of them.
  std::vector<Queue> TakeAll();

 private:
  struct Entry {
    Queue queue;
    std::uint32_t server = 0;
  };
  void Leave(std::uint32_t server);

  std::unordered_map<Lane, Entry> entries_;
  std::unordered_map<std::uint32_t, std::size_t> lanes_of_;  // how many, by server
};

}  // namespace weir::store::redis
