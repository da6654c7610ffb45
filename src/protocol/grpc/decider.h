#pragma once

// What arrives together on a connection is decided together: methods turn messages into jobs of a
// Burst, and when the session has passed on everything, the whole burst is one Limiter::Decide.
// With a store that answers immediately, the burst is answered before the session looks for output;
// with one that answers later, the burst waits and the next one collects meanwhile.

#include <google/protobuf/arena.h>
#include <google/protobuf/message.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "limiter/limiter.h"
#include "policy/request.h"
#include "protocol/grpc/call.h"
#include "protocol/grpc/method.h"
#include "store/store.h"
#include "telemetry/span.h"
#include "weir/clock.h"
#include "weir/quota.h"

namespace weir::grpc {

class Burst;
class Decider;

/// One message that waits for the decisions on its checks.
struct Job {
  class DecidingMethod* method = nullptr;
  google::protobuf::Message* request = nullptr;  ///< owned by the burst
  std::int32_t call = 0;
  std::uint64_t number = 0;  ///< its place among the answers of a stream
  std::size_t first = 0;     ///< its checks in the burst
  std::size_t count = 0;
  bool dropped = false;  ///< its call ended before all of them were submitted
  telemetry::SpanContext trace = {};
  Nanos arrived = 0;  ///< kept only if it is traced
};

/// A method that answers with decisions. Thread safety: belongs to one reactor.
class DecidingMethod : public Method {
 public:
  explicit DecidingMethod(Decider& decider) : decider_(decider) {}

  void OnMessage(Call& call, std::string_view message) final;

  /// The path to the parts of a request, for CountParts: its descriptors and their entries.
  virtual std::span<const std::uint32_t> parts() const noexcept {
    static constexpr std::uint32_t kPath[] = {2, 1};
    return kPath;
  }
  /// Creates an empty message of the request's type. Messages are reused.
  virtual std::unique_ptr<google::protobuf::Message> NewRequest() const = 0;
  /// Adds the checks that `request` needs. An error ends the call, and nothing is decided.
  virtual Status Ask(const google::protobuf::Message& request, Burst& burst) = 0;
  /// Whether `request` returns permits although the method's calls are admitted as checks: then
  /// the caller must have the right to.
  virtual bool GivesBack(const google::protobuf::Message& request) const {
    (void)request;
    return false;
  }
  /// The checks of the job are decided: answers the call.
  virtual void Answer(const Job& job, std::span<const limiter::Check> checks, Call& call) = 0;

 private:
  friend class Burst;

  Status Take(Call& call, google::protobuf::Message& request, Burst& burst, std::size_t first);

  Decider& decider_;
};

/// Checks that are decided together, and the memory they point into. Reused, so that hardly
/// anything is allocated in steady state. Messages and checks keep their memory when they
/// are cleared, and each position of a repeated field keeps its own, so everything is freed from
/// time to time: what it keeps is bounded by what it has read since.
///
/// Thread safety: belongs to one reactor.
class Burst {
 public:
  /// Begins a check; the descriptors and entries added next belong to it. Valid until the next one.
  limiter::Check& AddCheck(std::string_view domain, store::Op op, std::int64_t cost);
  /// Begins a descriptor of the last check that costs what its check costs.
  void AddDescriptor();
  /// Likewise with its own cost and a quota that replaces the policies', or none.
  /// `reported`: the cost was given for this descriptor alone.
  void AddDescriptor(std::int64_t cost, const std::optional<Quota>& override_quota, bool reported);
  void AddEntry(std::string_view key, std::string_view value);

 private:
  friend class Decider;
  friend class DecidingMethod;

  struct Extent {
    std::size_t first = 0;
    std::size_t count = 0;
    bool special = false;  // a check some of whose descriptors have a cost or quota of their own
  };
  struct Shelf {
    const DecidingMethod* method = nullptr;
    std::vector<std::unique_ptr<google::protobuf::Message>> messages;
    std::size_t used = 0;
  };

  google::protobuf::Message& TakeMessage(const DecidingMethod& method, std::size_t bytes);
  void DropLastMessage(const DecidingMethod& method, std::size_t bytes) noexcept;
  void Truncate(std::size_t checks) noexcept;
  std::size_t WeightOf(std::size_t first) const noexcept;
  std::size_t weight() const noexcept { return bytes_ + WeightOf(0); }
  Call* CallOf(const Job& job) const noexcept;
  void DropEnded() noexcept;
  void PointCheckAt(std::size_t index);
  void Point();
  void Answer(telemetry::Tracer* tracer);
  void Clear();

  void Record(const Job& job, telemetry::Tracer* tracer) const;

  std::shared_ptr<Session*> session_;
  std::vector<Job> jobs_;
  std::size_t job_ = 0;                 // the first that may have checks left to submit
  std::size_t bytes_ = 0;               // of their messages
  limiter::Origin origin_;              // of the checks that are being added
  std::vector<limiter::Check> checks_;  // the first used_ are this burst's
  std::size_t used_ = 0;
  std::size_t asked_ = 0;                          // how many of them were submitted to the limiter
  std::size_t asking_ = 0;                         // calls of the limiter under way
  std::vector<std::shared_ptr<const void>> kept_;  // what checks that it has decided point into
  std::vector<Extent> check_extents_;              // descriptors of each check
  std::vector<Extent> descriptor_extents_;
  std::vector<policy::Entry> entries_;
  std::vector<policy::Descriptor> descriptors_;
  std::vector<std::int64_t> costs_;
  std::vector<std::uint8_t> reported_;
  std::vector<const Quota*> overrides_;
  std::deque<Quota> override_quotas_;
  std::deque<std::string> request_ids_;  // of calls whose caller gave one
  std::vector<Shelf> shelves_;
  std::size_t read_ = 0;  // bytes of their messages since its memory was last freed
  std::vector<std::unique_ptr<google::protobuf::Arena>> large_;  // one for each large message
};

/// Collects and runs bursts. Thread safety: belongs to one reactor, as its limiter does.
class Decider {
 public:
  explicit Decider(limiter::Limiter& limiter);

  telemetry::Tracer* tracer() const noexcept { return limiter_.tracer(); }
  /// The burst that is being collected.
  Burst& burst() noexcept { return *collecting_; }
  /// Decides what has been collected, and answers the calls when that is done.
  void Flush() {
    for (bool more = Begin(); more;) more = Turn();
  }
  /// Like Flush in turns, for callers with other work in between: one message may contain 20,000
  /// descriptors, which take a reactor many milliseconds. Begin decides everything if it is one
  /// turn's work, else a part of it, and Turn another part. True: there is more, call Turn.
  ///
  /// What is left of calls that end meanwhile is not decided: no one waits for it, and it would
  /// delay the others. The memory accounted to a call ends with it, so what is decided in turns is
  /// bounded here: if there is too much, Begin finishes some of it immediately, which delays those
  /// that send more.
  bool Begin();
  bool Turn();
  bool midway() const noexcept { return !midway_.empty(); }

 private:
  struct Midway {
    Burst* burst;
    std::size_t weight;
  };

  Burst& NewBurst();
  bool Ask(Burst& burst);
  void Done(Burst& burst);
  void Finish(Burst& burst);

  limiter::Limiter& limiter_;
  std::unordered_map<const Burst*, std::unique_ptr<Burst>> all_;
  std::vector<Burst*> idle_;
  Burst* collecting_ = nullptr;
  std::deque<Midway> midway_;  // the limiter has decided or is deciding a part of them
  std::size_t midway_weight_ = 0;
};

}  // namespace weir::grpc
