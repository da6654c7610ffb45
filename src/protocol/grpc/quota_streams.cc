#include "protocol/grpc/quota_streams.h"

#include <algorithm>

#include "base/error.h"
#include "envoy/service/rate_limit_quota/v3/rlqs.pb.h"
#include "protocol/grpc/quota_messages.h"

namespace weir::grpc {
namespace {

using Action = envoy::service::rate_limit_quota::v3::RateLimitQuotaResponse::BucketAction;

/// Questions that go to the limiter together.
constexpr std::size_t kRoundSize = 512;
/// Buckets, or remaining allowances of disconnected Envoys, per turn: 1 or 2 ms.
constexpr std::size_t kTurnSize = 256;

/// A check of one bucket, with the memory that it points into.
struct Question {
  std::shared_ptr<limiter::Assigned> assigned;
  std::vector<policy::Entry> entries;
  policy::Descriptor descriptor;

  void Fill(limiter::Check& check, store::Op op, std::int64_t cost) {
    entries.clear();
    for (const auto& [name, value] : assigned->entries) entries.push_back({name, value});
    descriptor = entries;
    check.Reset(op, {.door = "rlqs"});
    check.request.domain = assigned->domain;
    check.request.descriptors = std::span(&descriptor, 1);
    check.request.cost = cost;
  }
};

}  // namespace

struct QuotaStreams::Bucket {
  explicit Bucket(Nanos now) : quota(now) {}

  std::shared_ptr<limiter::Assigned> assigned;
  QuotaBucket quota;
  std::vector<std::string> keys;  // in the store
  bool asking = false;
  bool gone = false;
};

struct QuotaStreams::Stream {
  std::unique_ptr<QuotaPeer> peer;
  std::string domain;
  std::map<std::string, std::shared_ptr<Bucket>, std::less<>> buckets;
  int stalls = 0;
  bool gone = false;
};

/// What is submitted to the limiter together.
struct QuotaStreams::Round {
  Parts parts;
  std::vector<QuotaBucket::Ask> asks;
  std::vector<Question> questions;
  std::vector<limiter::Check> checks;
};

struct QuotaStreams::Tail {
  std::shared_ptr<limiter::Assigned> assigned;
  std::int64_t cost = 0;
};

QuotaStreams::QuotaStreams(limiter::Limiter& limiter, limiter::Assignments& assignments,
                           const Clock& clock, const QuotaBounds& bounds)
    : limiter_(limiter), assignments_(assignments), clock_(clock), bounds_(bounds) {}

QuotaStreams::~QuotaStreams() {
  assignments_.totals().streams -= static_cast<std::int64_t>(streams_.size());
}

Result<QuotaStreams::StreamId> QuotaStreams::Open(std::unique_ptr<QuotaPeer> peer) {
  if (streams_.size() >= bounds_.max_streams) {
    ++assignments_.totals().turned_away;
    return Error{Code::kResourceExhausted, "too many quota streams"};
  }
  const auto stream = std::make_shared<Stream>();
  stream->peer = std::move(peer);
  streams_.emplace(next_id_, stream);
  ++assignments_.totals().streams;
  return next_id_++;
}

Status QuotaStreams::Check(const Stream& stream, const Reports& reports) const {
  if (stream.domain.empty() && reports.domain().empty()) {
    return Invalid("domain must not be empty in the first report");
  }
  if (!stream.domain.empty() && !reports.domain().empty() && reports.domain() != stream.domain) {
    return Invalid("domain must not change within a stream");
  }
  if (reports.domain().size() > bounds_.max_domain_bytes) {
    return Invalid("domain must have at most " + std::to_string(bounds_.max_domain_bytes) +
                   " bytes");
  }
  return {};
}

bool QuotaStreams::IsAssignable(const Stream& stream, const std::vector<Name>& id) const {
  std::size_t bytes = 0;
  for (const auto& [name, value] : id) bytes += name.size() + value.size();
  return stream.buckets.size() < bounds_.max_buckets_per_stream && buckets_ < bounds_.max_buckets &&
         id.size() <= bounds_.max_id_entries && bytes <= bounds_.max_id_bytes && IsSayable(id);
}

std::shared_ptr<QuotaStreams::Bucket> QuotaStreams::Add(Stream& stream, std::string id,
                                                        std::vector<Name> names) {
  auto bucket = std::make_shared<Bucket>(clock_.Now());
  bucket->assigned = assignments_.Add(stream.domain, std::move(names));
  stream.buckets.emplace(std::move(id), bucket);
  ++buckets_;
  return bucket;
}

/// It gets no assignment, so the Envoy follows its no_assignment_behavior. And it forgets the
/// bucket: otherwise it would report it forever, with all the others, in messages that grow.
void QuotaStreams::TurnAway(const std::vector<Name>& id, Response& response) {
  ++assignments_.totals().turned_away;
  if (!IsSayable(id)) return;
  Action& action = *response.add_bucket_action();
  SetId(action, id);
  action.mutable_abandon_action();
}

Status QuotaStreams::OnReports(StreamId id, const Reports& reports) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return Error{Code::kUnavailable, "the stream has ended"};
  const std::shared_ptr<Stream> stream = found->second;
  if (Status checked = Check(*stream, reports); !checked.ok()) return checked;
  if (stream->domain.empty()) stream->domain = reports.domain();
  const Nanos now = clock_.Now();
  Parts fresh;
  Response unwanted;
  for (const auto& usage : reports.bucket_quota_usages()) {
    std::vector<Name> names = NamesOf(usage.bucket_id());
    std::string text = TextOf(names);
    const auto known = stream->buckets.find(text);
    std::shared_ptr<Bucket> bucket = known == stream->buckets.end() ? nullptr : known->second;
    if (bucket == nullptr && !IsAssignable(*stream, names)) {
      TurnAway(names, unwanted);
      continue;
    }
    if (bucket == nullptr) {
      bucket = Add(*stream, std::move(text), std::move(names));
      fresh.emplace_back(stream, bucket);
    }
    const std::uint64_t allowed = usage.num_requests_allowed();
    const std::uint64_t denied = usage.num_requests_denied();
    const std::uint64_t sum = allowed + denied < allowed ? allowed : allowed + denied;
    bucket->quota.Report(now, std::chrono::seconds(usage.time_elapsed().seconds()), sum);
    bucket->assigned->demand = bucket->quota.demand();
  }
  if (unwanted.bucket_action_size() > 0) stream->peer->Send(unwanted);
  AskFor(std::move(fresh));
  return {};
}

void QuotaStreams::Close(StreamId id, bool at_once) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::shared_ptr<Stream> stream = std::move(found->second);
  streams_.erase(found);
  --assignments_.totals().streams;
  stream->gone = true;
  buckets_ -= stream->buckets.size();
  const Nanos now = clock_.Now();
  std::vector<Tail> tails;
  for (const auto& [text, bucket] : stream->buckets) {
    bucket->gone = true;
    const std::int64_t owed = bucket->quota.Abandon(now);
    if (owed > 0) tails.push_back({bucket->assigned, owed});
  }
  if (at_once) return ChargeTails(std::move(tails));
  std::move(tails.begin(), tails.end(), std::back_inserter(tails_));
}

bool QuotaStreams::Tick() {
  // What the last second left undone comes first; the buckets pay for the time this takes.
  if (todo_.empty()) Collect();
  return Turn();
}

void QuotaStreams::Collect() {
  std::vector<StreamId> stalled;
  for (const auto& [id, stream] : streams_) {
    if (Stalled(*stream)) {
      stalled.push_back(id);
      continue;
    }
    for (const auto& [text, bucket] : stream->buckets) todo_.emplace_back(stream, bucket);
  }
  for (const StreamId id : stalled) Close(id, false);
  if (todo_.empty()) return;
  // The first to be charged finds most left, so each second another bucket goes first.
  first_ = (first_ + 1) % todo_.size();
  std::rotate(todo_.begin(), todo_.begin() + static_cast<std::ptrdiff_t>(first_), todo_.end());
}

bool QuotaStreams::Turn() {
  const std::size_t tails = std::min(kTurnSize, tails_.size());
  const auto last = tails_.end() - static_cast<std::ptrdiff_t>(tails);
  std::vector<Tail> charged(std::make_move_iterator(last), std::make_move_iterator(tails_.end()));
  tails_.erase(last, tails_.end());
  ChargeTails(std::move(charged));
  const Nanos now = clock_.Now();
  Parts parts;
  std::map<Stream*, Response> abandoned;
  const std::size_t end = std::min(done_ + kTurnSize, todo_.size());
  for (; done_ < end; ++done_) {
    Part& part = todo_[done_];
    if (part.first->gone || part.second->gone || part.second->asking) continue;
    if (part.second->quota.Idle(now)) {
      Abandon(part, abandoned[part.first.get()]);
    } else {
      parts.push_back(std::move(part));
    }
  }
  for (const auto& [stream, response] : abandoned) stream->peer->Send(response);
  if (done_ == todo_.size()) {
    todo_.clear();
    done_ = 0;
  }
  AskFor(std::move(parts));
  return !todo_.empty() || !tails_.empty();
}

void QuotaStreams::Abandon(const Part& part, Response& response) {
  part.second->gone = true;
  Action& action = *response.add_bucket_action();
  SetId(action, part.second->assigned->entries);
  action.mutable_abandon_action();
  ++assignments_.totals().abandoned;
  --buckets_;
  part.first->buckets.erase(TextOf(part.second->assigned->entries));
}

/// An Envoy that does not read would get everything at once later, and take it for new assignments.
bool QuotaStreams::Stalled(Stream& stream) {
  stream.stalls = stream.peer->sending() ? stream.stalls + 1 : 0;
  if (stream.stalls < 2) return false;
  stream.peer->End({Code::kUnavailable, "the client does not read its assignments in time"});
  return true;
}

void QuotaStreams::AskFor(Parts parts) {
  const Nanos now = clock_.Now();
  std::erase_if(parts, [](const Part& part) { return part.second->asking; });
  for (std::size_t at = 0; at < parts.size(); at += kRoundSize) {
    auto round = std::make_shared<Round>();
    for (std::size_t i = at; i < std::min(at + kRoundSize, parts.size()); ++i) {
      parts[i].second->asking = true;
      round->asks.push_back(parts[i].second->quota.Begin(now));
      round->parts.push_back(std::move(parts[i]));
    }
    Ask(std::move(round));
  }
}

void QuotaStreams::Ask(std::shared_ptr<Round> round) {
  const std::size_t count = round->parts.size();
  round->questions.resize(count);
  round->checks.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    round->questions[i].assigned = round->parts[i].second->assigned;
    const std::int64_t cost = round->asks[i].cost;
    round->questions[i].Fill(round->checks[i], cost == 0 ? store::Op::kPeek : store::Op::kCharge,
                             cost);
  }
  Round& asked = *round;
  limiter_.Decide(asked.checks, [this, round = std::move(round)] { OnAnswers(round); });
}

void QuotaStreams::OnAnswers(const std::shared_ptr<Round>& round) {
  const Nanos now = clock_.Now();
  auto again = std::make_shared<Round>();
  Parts ready;
  for (std::size_t i = 0; i < round->parts.size(); ++i) {
    Part& part = round->parts[i];
    Bucket& bucket = *part.second;
    const limiter::Check& check = round->checks[i];
    const bool granted = check.status.ok() && check.decision.allowed();
    if (granted) assignments_.totals().charged += static_cast<std::uint64_t>(round->asks[i].cost);
    if (bucket.gone) continue;
    if (std::vector<std::string> keys = KeysOf(check); keys != bucket.keys) {
      bucket.keys = keys;
      assignments_.SetKeys(*bucket.assigned, std::move(keys));
    }
    if (const auto next = bucket.quota.OnAnswer(now, FactsOf(check), granted)) {
      again->asks.push_back(*next);
      again->parts.push_back(std::move(part));
    } else {
      bucket.asking = false;
      ready.push_back(std::move(part));
    }
  }
  Push(ready);
  if (!again->parts.empty()) Ask(std::move(again));
}

/// Sends each stream what was decided about its buckets, in one message.
void QuotaStreams::Push(const Parts& parts) {
  const Nanos now = clock_.Now();
  std::map<Stream*, Response> responses;
  for (const auto& [stream, bucket] : parts) {
    if (stream->gone || bucket->gone) continue;
    const std::int64_t rate = bucket->quota.rate();
    Action& action = *responses[stream.get()].add_bucket_action();
    SetId(action, bucket->assigned->entries);
    SetStrategy(action, rate);
    bucket->quota.Pushed(now);
    bucket->assigned->per_second = rate;
    bucket->assigned->pushed = now;
    ++(rate == 0 ? assignments_.totals().denied : assignments_.totals().pushed);
  }
  for (const auto& [stream, response] : responses) stream->peer->Send(response);
}

/// What disconnected Envoys may still admit counts, whether there is room for it or not.
void QuotaStreams::ChargeTails(std::vector<Tail> tails) {
  for (std::size_t at = 0; at < tails.size(); at += kRoundSize) {
    const std::size_t count = std::min(kRoundSize, tails.size() - at);
    const auto round = std::make_shared<Round>();
    round->questions.resize(count);
    round->checks.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      Tail& tail = tails[at + i];
      assignments_.totals().tails += static_cast<std::uint64_t>(tail.cost);
      round->questions[i].assigned = std::move(tail.assigned);
      round->questions[i].Fill(round->checks[i], store::Op::kOverdraw, tail.cost);
    }
    ++charging_;
    limiter_.Decide(round->checks, [this, round] { --charging_; });
  }
}

}  // namespace weir::grpc
