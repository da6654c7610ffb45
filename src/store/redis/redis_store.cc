#include "store/redis/redis_store.h"

// How it works: applications queue in lanes (see route.h). At the end of the turn of the event loop
// in which they came, each lane sends what it has, many applications to a call of the script, and
// keeps up to kDepth calls in flight; what comes while all are out waits and goes together. As long
// as there are calls enough, a single charge goes by itself, with a script made for that
// (script/single), which costs the server a tenth of one that can do everything.

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/pending.h"
#include "store/redis/call.h"
#include "store/redis/crossing.h"
#include "store/redis/route.h"
#include "store/redis/script.h"
#include "store/redis/single.h"

namespace weir::store::redis {
namespace {

namespace asio = boost::asio;
using weir::redis::Answer;

constexpr std::size_t kDepth = 4;
constexpr std::size_t kMaxApplications = kMaxChargesOfCall;
constexpr int kMaxReferences = 3;
constexpr const char* kClosed = "redis: the store was closed";

/// Applications that travel together.
struct Load {
  std::vector<Pending> pending;
  std::vector<Application*> applications;
  int references = 0;           // that were tried
  std::optional<Shape> single;  // the script that is tried first
  Nanos counted_from = 0;       // single: the reference
};

/// What the store and its calls in flight share. Not thread-safe.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(asio::io_context& io, const Options& options, std::unique_ptr<Route> route)
      : io_(io),
        clock_(options.clock),
        max_pending_(options.max_pending),
        route_(std::move(route)),
        reference_(SystemClock::Get().Now()) {}

  void Apply(std::span<Application> applications, Done done);
  void Close();
  std::uint32_t PartOf(const Application& application) const { return route_->PartOf(application); }
  std::string GroupOf(std::string_view key) const { return route_->GroupOf(key); }
  std::optional<std::string> ProbeKey(std::uint32_t part) const { return route_->ProbeKey(part); }

 private:
  struct Queue {
    std::deque<Pending> waiting;
    std::size_t in_flight = 0;
    const Load* last = nullptr;  // the latest that was sent, while it is in flight

    // True if what waits can go call by call, and the first of it is a call of its own.
    bool has_single() const {
      return waiting.size() <= kDepth - in_flight && SingleShape(*waiting.front().application) &&
             (waiting.size() == 1 || waiting[1].call != waiting[0].call);
    }

    // An Apply that does not fit into one call goes call by call: a call that is sent again, to
    // another node or with the script's text, would be overtaken by the next.
    bool blocked() const {
      return last != nullptr && last->pending.back().call == waiting.front().call;
    }
  };

  void Add(Application& application, const std::shared_ptr<Pending::Call>& call);
  void Cross(Application& application, const Pending& pending);
  void FlushSoon();
  void Flush();
  void Pump(Route::Lane lane);
  static std::shared_ptr<Load> Take(Queue& queue);
  void Send(Route::Lane lane, const std::shared_ptr<Load>& load);
  void TakeAnswer(Route::Lane lane, const std::shared_ptr<Load>& load, const Answer& answer);
  void Finish(Load& load, const Status& status);

  asio::io_context& io_;
  const Clock* const clock_;
  const std::size_t max_pending_;
  std::unique_ptr<Route> route_;
  Nanos reference_;  // the server's time, about
  bool closed_ = false;
  bool flushing_ = false;
  std::size_t pending_ = 0;
  std::unordered_map<Route::Lane, Queue> queues_;
  std::vector<Route::Lane> touched_;  // lanes with something new
};

void Core::Apply(std::span<Application> applications, Done done) {
  if (closed_) {
    for (Application& each : applications) each.status = Error{Code::kUnavailable, kClosed};
    return done();
  }
  auto call = std::make_shared<Pending::Call>();
  call->done = std::move(done);
  call->left = applications.size() + 1;  // and this call itself
  route_->Turn();
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
  Queue& queue = queues_[*lane];
  if (queue.waiting.empty()) touched_.push_back(*lane);
  queue.waiting.push_back(pending);
  FlushSoon();
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
  const auto found = queues_.find(lane);
  if (found == queues_.end()) return;
  Queue& queue = found->second;
  while (queue.in_flight < kDepth && !queue.waiting.empty() && !queue.blocked()) {
    const std::shared_ptr<Load> load = Take(queue);
    ++queue.in_flight;
    queue.last = load.get();
    Send(lane, load);
  }
  if (queue.in_flight == 0 && queue.waiting.empty()) queues_.erase(found);
}

std::shared_ptr<Load> Core::Take(Queue& queue) {
  auto load = std::make_shared<Load>();
  std::size_t charges = 0;
  const std::size_t most = queue.has_single() ? 1 : kMaxApplications;
  while (!queue.waiting.empty() && load->pending.size() < most) {
    charges += queue.waiting.front().application->charges.size();
    if (charges > kMaxChargesOfCall && !load->pending.empty()) break;
    load->applications.push_back(queue.waiting.front().application);
    load->pending.push_back(std::move(queue.waiting.front()));
    queue.waiting.pop_front();
  }
  if (load->applications.size() == 1) load->single = SingleShape(*load->applications[0]);
  return load;
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
    Queue& queue = queues_[lane];
    --queue.in_flight;
    if (queue.last == load.get()) queue.last = nullptr;
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
  const auto route = std::exchange(route_, nullptr);
  auto queues = std::exchange(queues_, {});
  const Error error{Code::kUnavailable, kClosed};
  for (auto& [lane, queue] : queues) {
    for (const Pending& pending : queue.waiting) {
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
  bool immediate() const noexcept override { return false; }
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
  auto core = std::make_shared<Core>(io, options, *std::move(route));
  return std::unique_ptr<Store>(std::make_unique<RedisStore>(std::move(core)));
}

}  // namespace weir::store::redis
