#pragma once

// The Envoys that are connected for assignments (RLQS), their buckets, and the round of questions
// that each second asks the limiter for them. No socket and no timer: the owner calls Tick.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "limiter/assignments.h"
#include "limiter/limiter.h"
#include "protocol/grpc/quota_bucket.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace envoy::service::rate_limit_quota::v3 {
class RateLimitQuotaResponse;
class RateLimitQuotaUsageReports;
}  // namespace envoy::service::rate_limit_quota::v3

namespace weir::grpc {

/// What a malicious peer may cost.
struct QuotaBounds {
  std::size_t max_streams = 1'000;  ///< of one reactor
  std::size_t max_buckets_per_stream = 1'000;
  std::size_t max_buckets = 20'000;  ///< of one reactor
  std::size_t max_id_entries = 16;
  std::size_t max_id_bytes = 1'024;  ///< names and values of one bucket's id
  std::size_t max_domain_bytes = 256;
};

/// The Envoy at the other end of a stream.
class QuotaPeer {
 public:
  virtual ~QuotaPeer() = default;
  /// False: it has disconnected.
  virtual bool Send(
      const envoy::service::rate_limit_quota::v3::RateLimitQuotaResponse& response) = 0;
  /// Some of what was sent has not been read by it yet.
  virtual bool sending() const = 0;
  virtual void End(const Error& error) = 0;
};

/// Thread safety: belongs to one reactor, as its limiter does. Must outlive its limiter calls.
class QuotaStreams {
 public:
  using Response = envoy::service::rate_limit_quota::v3::RateLimitQuotaResponse;
  using Reports = envoy::service::rate_limit_quota::v3::RateLimitQuotaUsageReports;
  using StreamId = std::uint64_t;

  /// References must outlive it. Only the clock's rate matters, not its time of day.
  QuotaStreams(limiter::Limiter& limiter, limiter::Assignments& assignments, const Clock& clock,
               const QuotaBounds& bounds = {});
  ~QuotaStreams();
  QuotaStreams(const QuotaStreams&) = delete;
  QuotaStreams& operator=(const QuotaStreams&) = delete;

  /// A stream has begun; an error if there are too many.
  Result<StreamId> Open(std::unique_ptr<QuotaPeer> peer);
  /// Handles a message of a stream. An error ends the stream.
  Status OnReports(StreamId id, const Reports& reports);
  /// A message that is too large to be read is skipped.
  void PassOver() noexcept { ++assignments_.totals().turned_away; }
  /// A stream is over; what its Envoy may still admit is charged, now or with the next Tick.
  void Close(StreamId id, bool at_once);

  /// Call it about once a second: charges for the next one, and sends every assignment again.
  /// True: there is more to do than one turn should; call Turn for it.
  bool Tick();
  /// The next part of it; call it, after others have had their turn, as long as it returns true.
  bool Turn();

  /// Something that a disconnected Envoy may still admit is not charged yet.
  bool owing() const noexcept { return !tails_.empty() || charging_ > 0; }

  std::size_t streams() const noexcept { return streams_.size(); }
  std::size_t buckets() const noexcept { return buckets_; }

 private:
  struct Bucket;
  struct Stream;
  struct Round;
  struct Tail;
  using Part = std::pair<std::shared_ptr<Stream>, std::shared_ptr<Bucket>>;
  using Name = std::pair<std::string, std::string>;
  using Parts = std::vector<Part>;

  Status Check(const Stream& stream, const Reports& reports) const;
  bool IsAssignable(const Stream& stream, const std::vector<Name>& id) const;
  std::shared_ptr<Bucket> Add(Stream& stream, std::string id, std::vector<Name> names);
  void TurnAway(const std::vector<Name>& id, Response& response);
  void AskFor(Parts parts);
  void Ask(std::shared_ptr<Round> round);
  void OnAnswers(const std::shared_ptr<Round>& round);
  void Push(const Parts& parts);
  void Collect();
  void Abandon(const Part& part, Response& response);
  static bool Stalled(Stream& stream);
  void ChargeTails(std::vector<Tail> tails);

  limiter::Limiter& limiter_;
  limiter::Assignments& assignments_;
  const Clock& clock_;
  const QuotaBounds bounds_;
  std::map<StreamId, std::shared_ptr<Stream>> streams_;
  StreamId next_id_ = 1;
  std::size_t buckets_ = 0;
  std::vector<Tail> tails_;
  std::size_t charging_ = 0;  // rounds of tails that the limiter has not answered
  Parts todo_;                // of this second
  std::size_t done_ = 0;      // of todo_
  std::size_t first_ = 0;     // which of todo_ is charged first
};

}  // namespace weir::grpc
