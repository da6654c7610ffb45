#include "protocol/grpc/decider.h"

#include <algorithm>

#include "limiter/request_span.h"
#include "protocol/grpc/message_parts.h"
#include "protocol/grpc/session.h"
#include "telemetry/tracer.h"

namespace weir::grpc {
namespace {

// A burst that has read this much frees its memory: a message of 2 bytes can take 100.
constexpr std::size_t kReadBeforeFreed = 256 << 10;
constexpr std::size_t kLargeMessage = 32 << 10;
constexpr std::size_t kKeptChecks = 4096;
constexpr std::size_t kKeptBursts = 64;
// Keys and descriptors that are decided in one turn.
constexpr std::size_t kPartsAtOnce = 512;
// What bursts that are decided in turns may weigh together, if there are several: about two
// messages of 10,000 checks. The verdicts of decided checks come on top of that.
constexpr std::size_t kMostMidway = 16 << 20;

// What requests take in memory beyond their own bytes: a rough estimate, rather too high.
constexpr std::size_t kEntryBytes = 96;
constexpr std::size_t kDescriptorBytes = 256;
constexpr std::size_t kCheckBytes = 768;

}  // namespace

void DecidingMethod::OnMessage(Call& call, std::string_view message) {
  if (HasTooManyParts(message, parts())) {
    return Refuse(call, kTooManyParts);
  }
  Burst& burst = decider_.burst();
  google::protobuf::Message& request = burst.TakeMessage(*this, message.size());
  const std::size_t first = burst.used_;
  Status taken;
  if (request.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    taken = Take(call, request, burst, first);
  } else {
    taken = Error{Code::kInvalidArgument, "the message is not a valid protobuf"};
  }
  if (taken.ok()) return;
  burst.Truncate(first);
  burst.DropLastMessage(*this, message.size());
  // A burst without jobs is never decided, so nothing else would clear it.
  if (burst.jobs_.empty()) burst.Clear();
  const Error& error = taken.error();
  if (error.code == Code::kResourceExhausted) return Refuse(call, error.message);
  call.Finish(error);
}

Status DecidingMethod::Take(Call& call, google::protobuf::Message& request, Burst& burst,
                            std::size_t first) {
  if (GivesBack(request)) {
    if (Status admitted = call.AdmitToGiveBack(); !admitted.ok()) return admitted;
  }
  const Nanos now = decider_.tracer() == nullptr ? 0 : SystemClock::Get().Now();
  burst.origin_ = {"grpc", {}, telemetry::ArrivedWith(call.traceparent(), decider_.tracer(), now)};
  if (!call.request_id().empty()) {
    burst.origin_.request_id = burst.request_ids_.emplace_back(call.request_id());
  }
  if (Status asked = Ask(request, burst); !asked.ok()) return asked;
  if (Status held = call.Hold(burst.WeightOf(first)); !held.ok()) return held;
  if (!burst.session_) burst.session_ = call.session().link();
  burst.jobs_.push_back({this, &request, call.id(), call.Expect(), first, burst.used_ - first,
                         /*dropped=*/false, burst.origin_.trace, now});
  return {};
}

limiter::Check& Burst::AddCheck(std::string_view domain, store::Op op, std::int64_t cost) {
  if (used_ == checks_.size()) checks_.emplace_back();
  limiter::Check& check = checks_[used_++];
  check.Reset(op, origin_);
  check.request.domain = domain;
  check.request.cost = cost;
  check_extents_.push_back({descriptor_extents_.size(), 0});
  return check;
}

void Burst::AddDescriptor() {
  descriptor_extents_.push_back({entries_.size(), 0});
  costs_.push_back(checks_[used_ - 1].request.cost);
  reported_.push_back(0);
  overrides_.push_back(nullptr);
  ++check_extents_.back().count;
}

void Burst::AddDescriptor(std::int64_t cost, const std::optional<Quota>& override_quota,
                          bool reported) {
  AddDescriptor();
  if (reported || cost != costs_.back()) check_extents_.back().special = true;
  costs_.back() = cost;
  reported_.back() = reported ? 1 : 0;
  if (!override_quota) return;
  check_extents_.back().special = true;
  overrides_.back() = &override_quotas_.emplace_back(*override_quota);
}

void Burst::AddEntry(std::string_view key, std::string_view value) {
  entries_.push_back({key, value});
  ++descriptor_extents_.back().count;
}

google::protobuf::Message& Burst::TakeMessage(const DecidingMethod& method, std::size_t bytes) {
  bytes_ += bytes;
  if (bytes > kLargeMessage) {
    // In large blocks, which are quick to allocate and return to the system when they are freed.
    google::protobuf::ArenaOptions blocks;
    blocks.start_block_size = 128 << 10;
    blocks.max_block_size = 2 << 20;
    large_.push_back(std::make_unique<google::protobuf::Arena>(blocks));
    return *method.NewRequest()->New(large_.back().get());
  }
  read_ += bytes;
  Shelf* shelf = nullptr;
  for (Shelf& candidate : shelves_) {
    if (candidate.method == &method) shelf = &candidate;
  }
  if (shelf == nullptr) {
    shelf = &shelves_.emplace_back();
    shelf->method = &method;
  }
  if (shelf->used == shelf->messages.size()) shelf->messages.emplace_back();
  std::unique_ptr<google::protobuf::Message>& message = shelf->messages[shelf->used++];
  if (message == nullptr) message = method.NewRequest();
  return *message;
}

void Burst::DropLastMessage(const DecidingMethod& method, std::size_t bytes) noexcept {
  bytes_ -= bytes;
  if (bytes > kLargeMessage) return large_.pop_back();
  for (Shelf& shelf : shelves_) {
    if (shelf.method == &method) shelf.messages[--shelf.used].reset();
  }
}

/// What the checks from `first` on take in memory beyond the bytes of their message.
std::size_t Burst::WeightOf(std::size_t first) const noexcept {
  if (first == used_) return 0;
  const std::size_t descriptor = check_extents_[first].first;
  const std::size_t descriptors = descriptor_extents_.size() - descriptor;
  const std::size_t entries =
      descriptors == 0 ? 0 : entries_.size() - descriptor_extents_[descriptor].first;
  return (used_ - first - 1) * kCheckBytes + descriptors * kDescriptorBytes + entries * kEntryBytes;
}

void Burst::Truncate(std::size_t checks) noexcept {
  if (checks == used_) return;
  const std::size_t descriptors = check_extents_[checks].first;
  if (descriptors < descriptor_extents_.size()) {
    entries_.resize(descriptor_extents_[descriptors].first);
  }
  descriptor_extents_.resize(descriptors);
  costs_.resize(descriptors);
  reported_.resize(descriptors);
  overrides_.resize(descriptors);
  check_extents_.resize(checks);
  used_ = checks;
}

/// The arrays no longer move from here on, so views of them can be taken only now.
void Burst::Point() {
  descriptors_.clear();
  for (const Extent& extent : descriptor_extents_) {
    descriptors_.push_back(std::span(entries_).subspan(extent.first, extent.count));
  }
  for (std::size_t i = 0; i < used_; ++i) PointCheckAt(i);
}

void Burst::PointCheckAt(std::size_t index) {
  const Extent& extent = check_extents_[index];
  policy::Request& request = checks_[index].request;
  request.descriptors = std::span(descriptors_).subspan(extent.first, extent.count);
  if (!extent.special) return;
  request.costs = std::span(costs_).subspan(extent.first, extent.count);
  request.reported = std::span(reported_).subspan(extent.first, extent.count);
  request.overrides = std::span(overrides_).subspan(extent.first, extent.count);
}

void Burst::Record(const Job& job, telemetry::Tracer* tracer) const {
  telemetry::Span span;
  span.context = job.trace;
  span.name = "grpc";
  span.start = job.arrived;
  span.end = SystemClock::Get().Now();
  span.Add("weir.door", "grpc");
  span.Add("rpc.method", job.method->path());
  limiter::RecordRequest(tracer, span, std::span(checks_).subspan(job.first, job.count));
}

/// Null if no one waits for the answer any more: the session may have ended while others were
/// decided or the store was asked, and the call may be cancelled or past its deadline.
Call* Burst::CallOf(const Job& job) const noexcept {
  if (*session_ == nullptr) return nullptr;
  Call* const call = (*session_)->Find(job.call);
  return call == nullptr || call->finished() ? nullptr : call;
}

/// Skips what is left of calls that have ended, up to the next check to decide.
void Burst::DropEnded() noexcept {
  for (; job_ < jobs_.size(); ++job_) {
    Job& job = jobs_[job_];
    const std::size_t end = job.first + job.count;
    if (end <= asked_) continue;
    if (CallOf(job) != nullptr) return;
    job.dropped = true;
    asked_ = end;
  }
}

void Burst::Answer(telemetry::Tracer* tracer) {
  for (const Job& job : jobs_) {
    if (job.dropped) continue;
    if (job.trace.sampled) [[unlikely]]
      Record(job, tracer);
    Call* const call = CallOf(job);
    if (call == nullptr) continue;
    job.method->Answer(job, std::span(checks_).subspan(job.first, job.count), *call);
  }
}

void Burst::Clear() {
  if (read_ > kReadBeforeFreed || checks_.size() > kKeptChecks) {
    *this = Burst();
    return;
  }
  session_.reset();
  jobs_.clear();
  used_ = asked_ = job_ = bytes_ = 0;
  kept_.clear();
  check_extents_.clear();
  descriptor_extents_.clear();
  entries_.clear();
  costs_.clear();
  reported_.clear();
  overrides_.clear();
  override_quotas_.clear();
  request_ids_.clear();
  for (Shelf& shelf : shelves_) shelf.used = 0;
  large_.clear();
}

Decider::Decider(limiter::Limiter& limiter) : limiter_(limiter), collecting_(&NewBurst()) {}

Burst& Decider::NewBurst() {
  auto burst = std::make_unique<Burst>();
  Burst& made = *burst;
  all_.emplace(&made, std::move(burst));
  return made;
}

bool Decider::Begin() {
  Burst* burst = collecting_;
  if (!burst->jobs_.empty()) {
    if (idle_.empty()) idle_.push_back(&NewBurst());
    collecting_ = idle_.back();
    idle_.pop_back();
    burst->Point();
    if (Ask(*burst)) {
      midway_.push_back({burst, burst->weight()});
      midway_weight_ += midway_.back().weight;
    }
  }
  while (midway_weight_ > kMostMidway && midway_.size() > 1) {
    const Midway next = midway_.front();
    midway_.pop_front();
    midway_weight_ -= next.weight;
    while (Ask(*next.burst)) continue;
  }
  return !midway_.empty();
}

bool Decider::Turn() {
  if (midway_.empty()) return false;
  const Midway next = midway_.front();
  midway_.pop_front();
  if (Ask(*next.burst)) {
    midway_.push_back(next);
  } else {
    midway_weight_ -= next.weight;
  }
  return !midway_.empty();
}

/// Submits one turn's work of the remaining checks, whether or not those before are decided.
/// True: there are more.
bool Decider::Ask(Burst& burst) {
  // Those of the first turn have just arrived.
  if (burst.asked_ > 0) burst.DropEnded();
  const std::size_t first = burst.asked_;
  if (first > 0 && first == burst.used_) {
    if (burst.asking_ == 0) Finish(burst);
    return false;
  }
  for (std::size_t parts = 0; burst.asked_ < burst.used_ && parts < kPartsAtOnce; ++burst.asked_) {
    parts += std::max<std::size_t>(burst.check_extents_[burst.asked_].count, 1);
  }
  const bool more = burst.asked_ < burst.used_;
  const std::span checks(burst.checks_.data() + first, burst.asked_ - first);
  ++burst.asking_;
  limiter_.Decide(checks, [this, which = &burst] { Done(*which); });
  return more;
}

void Decider::Done(Burst& burst) {
  if (--burst.asking_ > 0 || burst.asked_ < burst.used_) {
    burst.kept_.push_back(limiter_.Keep());
    return;
  }
  Finish(burst);
}

void Decider::Finish(Burst& burst) {
  burst.Answer(limiter_.tracer());
  if (idle_.size() >= kKeptBursts) {
    all_.erase(&burst);
    return;
  }
  burst.Clear();
  idle_.push_back(&burst);
}

}  // namespace weir::grpc
