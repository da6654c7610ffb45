#include "store/redis/redis_store.h"

// How it works: applications queue in lanes (see route.h). At the end of the event loop's turn in
// which they arrived, each lane sends what it has, many applications per call of the script, and
// keeps a few calls in flight (see queue.h); what arrives while all are in flight waits and is sent
// together. As long as calls are available, a single charge is sent by itself, with a specialized
// script (script/single), which costs the server a tenth of the general one. With Options::gather a
// lane holds checks that come one by one for a moment, and sends them together.

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "drivers/redis/url.h"
#include "store/guard/asio_timers.h"
#include "store/pending.h"
#include "store/redis/call.h"
#include "store/redis/crossing.h"
#include "store/redis/queue.h"
#include "store/redis/route.h"
#include "store/redis/script.h"
#include "store/redis/single.h"

namespace weir::store::redis {
namespace {

namespace asio = boost::asio;
using weir::redis::Answer;

constexpr int kMaxReferences = 3;
// A check that comes after a silence longer than this many times `gather` does not wait.
constexpr int kSilence = 4;
constexpr const char* kClosed = "redis: the store was closed";

/// Shared by the store and its calls in flight. Not thread-safe.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(asio::io_context& io, const Options& options, std::unique_ptr<Route> route)
      : io_(io),
        clock_(options.clock),
        max_pending_(options.max_pending),
        gather_(options.gather),
        route_(std::move(route)),
        reference_(SystemClock::Get().Now()) {
    if (gather_.count() > 0) timers_ = std::make_unique<guard::AsioTimers>(io);
  }

  void Apply(std::span<Application> applications, Done done);
  void Close();
  std::uint32_t PartOf(const Application& application) const { return route_->PartOf(application); }
  std::string GroupOf(std::string_view key) const { return route_->GroupOf(key); }
  std::optional<std::string> ProbeKey(std::uint32_t part) const { return route_->ProbeKey(part); }

 private:
  void Add(Application& application, const std::shared_ptr<Pending::Call>& call);
  bool Holds(Route::Lane lane, Queue& queue, const Application& application);
  void Cross(Application& application, const Pending& pending);
  void FlushSoon();
  void Flush();
  void Pump(Route::Lane lane);
  void Send(Route::Lane lane, const std::shared_ptr<Load>& load);
  void TakeAnswer(Route::Lane lane, const std::shared_ptr<Load>& load, const Answer& answer);
  void Finish(Load& load, const Status& status);

  asio::io_context& io_;
  const Clock* const clock_;
  const std::size_t max_pending_;
  const std::chrono::nanoseconds gather_;
  // Time of the last check, if checks may wait for others.
  std::optional<std::chrono::steady_clock::time_point> came_;
  std::uint64_t holds_ = 0;
  std::unique_ptr<Timers> timers_;
  std::unique_ptr<Route> route_;
  Nanos reference_;  // the server's time, approximately
  bool closed_ = false;
  bool flushing_ = false;
  std::size_t pending_ = 0;
  Queues queues_;
  std::vector<Route::Lane> touched_;  // lanes with new applications
};

void Core::Apply(std::span<Application> applications, Done done) {
  if (closed_) {
    for (Application& each : applications) each.status = Error{Code::kUnavailable, kClosed};
    return done();
  }
  auto call = std::make_shared<Pending::Call>();
  call->done = std::move(done);
  call->left = applications.size() + 1;  // and this call itself
  route_->Turn(queues_);
  for (Application& application : applications) Add(application, call);
  Pending{nullptr, call}.Complete();
}

void Core::Add(Application& application, const std::shared_ptr<Pending::Call>& call) {
  const Pending pending{&application, call};
  application.status = {};
  if (application.charges.empty()) {
    application.applied = true;
    return pending.Complete();
  }
  if (application.charges.size() > kMaxCharges) {
    application.status =
        Error{Code::kInvalidArgument,
              "redis: at most " + std::to_string(kMaxCharges) + " keys can be charged together"};
    return pending.Complete();
  }
  if (pending_ >= max_pending_) {
    application.status =
        Error{Code::kResourceExhausted, "redis: too many checks are waiting for the store"};
    return pending.Complete();
  }
  const std::optional<Route::Lane> lane = route_->LaneOf(application);
  if (!lane) return Cross(application, pending);
  ++pending_;
  Queue& queue = queues_.Of(*lane, route_->ServerOf(*lane));
  const bool first = queue.waiting().empty();
  queue.Add(pending);
  if (timers_ != nullptr && Holds(*lane, queue, application)) return;
  if (first || timers_ != nullptr) touched_.push_back(*lane);
  FlushSoon();
}

/// Whether the application waits for others, being the last in the queue now. Only checks do; any
/// other operation releases those that wait. The groups that a check of several slots is split into
/// would each wait separately, so they do not.
bool Core::Holds(Route::Lane lane, Queue& queue, const Application& application) {
  if (application.op != Op::kCharge || application.returnable) {
    queue.Release();
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  const auto before = std::exchange(came_, now);
  const bool lately = before && now - *before <= kSilence * gather_;
  if (queue.waiting().size() > 1 || !lately) return queue.held();
  queue.Hold(++holds_);
  timers_->After(gather_, [this, lane, mark = holds_] {
    Queue* const held = queues_.Find(lane);
    if (held != nullptr) held->Release(mark);
    Pump(lane);
  });
  return queue.held();
}

void Core::Cross(Application& application, const Pending& pending) {
  if (!Crossing::Can(application)) {
    application.status =
        Error{Code::kFailedPrecondition,
              "redis: a reservation's keys are in different slots of the cluster; reserve for one "
              "descriptor at a time, or use the store with ?spread=off"};
    return pending.Complete();
  }
  Crossing::Run(
      application, route_->Apart(application),
      [self = shared_from_this()](std::span<Application> parts, Done done) {
        self->Apply(parts, std::move(done));
      },
      [pending] { pending.Complete(); });
}

void Core::FlushSoon() {
  if (flushing_) return;
  flushing_ = true;
  asio::post(io_, [self = shared_from_this()] {
    self->flushing_ = false;
    if (!self->closed_) self->Flush();
  });
}

void Core::Flush() {
  for (const Route::Lane lane : std::exchange(touched_, {})) Pump(lane);
}

void Core::Pump(Route::Lane lane) {
  Queue* const queue = queues_.Find(lane);
  if (queue == nullptr) return;
  const std::size_t depth = queues_.DepthOf(lane);
  while (const std::shared_ptr<Load> load = queue->Next(depth)) Send(lane, load);
  queues_.EraseIfIdle(lane);
}

void Core::Send(Route::Lane lane, const std::shared_ptr<Load>& load) {
  std::optional<Nanos> now;
  if (clock_ != nullptr) now = clock_->Now();
  ++load->references;
  const Names& names = route_->NamesOf(lane);
  auto answered = [self = shared_from_this(), lane, load](const Answer& answer) {
    self->TakeAnswer(lane, load, answer);
  };
  if (load->single) {
    SingleCall call = EncodeSingle(names, *load->applications[0], *load->single, reference_, now);
    load->counted_from = call.reference;
    return route_->Call(lane, SingleScript(*load->single), std::move(call.arguments),
                        std::move(answered));
  }
  route_->Call(lane, ApplyScript(), Encode(names, load->applications, reference_, now),
               std::move(answered));
}

void Core::TakeAnswer(Route::Lane lane, const std::shared_ptr<Load>& load, const Answer& answer) {
  Status status = answer.status;
  if (status.ok()) {
    const Decoded decoded =
        load->single ? DecodeSingle(answer.reply, *load->applications[0], load->counted_from)
                     : Decode(answer.reply, load->applications);
    status = decoded.status;
    if (decoded.declined && !closed_) {
      load->single.reset();
      return Send(lane, load);
    }
    if (decoded.declined) status = Error{Code::kUnavailable, kClosed};
    if (status.ok()) reference_ = decoded.now;
    if (decoded.stale && !closed_ && load->references < kMaxReferences) return Send(lane, load);
    if (decoded.stale) status = Error{Code::kUnavailable, "redis: the server's clock is unstable"};
  }
  if (!closed_) {
    queues_.Find(lane)->Answered(*load);
    Pump(lane);
  }
  Finish(*load, status);
}

void Core::Finish(Load& load, const Status& status) {
  pending_ -= load.pending.size();
  for (const Pending& pending : load.pending) {
    if (!status.ok()) pending.application->status = status;
    pending.Complete();
  }
}

void Core::Close() {
  closed_ = true;
  timers_.reset();
  const auto route = std::exchange(route_, nullptr);
  const std::vector<Queue> queues = queues_.TakeAll();
  const Error error{Code::kUnavailable, kClosed};
  for (const Queue& queue : queues) {
    for (const Pending& pending : queue.waiting()) {
      pending.application->status = error;
      pending.Complete();
    }
  }
}

class RedisStore final : public Store {
 public:
  explicit RedisStore(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~RedisStore() override { core_->Close(); }
  RedisStore(const RedisStore&) = delete;
  RedisStore& operator=(const RedisStore&) = delete;

  void Apply(std::span<Application> batch, Done done) override {
    core_->Apply(batch, std::move(done));
  }
  std::uint32_t PartOf(const Application& application) const override {
    return core_->PartOf(application);
  }
  std::string GroupOf(std::string_view key) const override { return core_->GroupOf(key); }
  std::string ProbeKey(std::uint32_t part) const override {
    return core_->ProbeKey(part).value_or(Store::ProbeKey(part));
  }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace

Result<std::unique_ptr<Store>> MakeStore(boost::asio::io_context& io, const Options& options) {
  Result<std::unique_ptr<Route>> route = MakeRoute(io, options);
  if (!route.ok()) return route.error();
  Options settings = options;
  if (settings.gather.count() == 0) settings.gather = weir::redis::ParseUrl(options.url)->gather;
  auto core = std::make_shared<Core>(io, settings, *std::move(route));
  return std::unique_ptr<Store>(std::make_unique<RedisStore>(std::move(core)));
}

}  // namespace weir::store::redis
