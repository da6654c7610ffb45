#include "store/remote/remote_store.h"

// How it works: the applications of one Apply queue for one connection. At the end of the
// event loop's turn in which they arrived, they go together in one call, and up to kDepth
// calls are in flight on a connection, decided in order. What a region's store decides by
// itself has its own connection: behind a charge that has to go to the home store, permits
// would arrive late.

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "drivers/redis/command.h"
#include "drivers/redis/connection.h"
#include "store/pending.h"
#include "store/remote/url.h"
#include "store/wire/answer.h"
#include "store/wire/question.h"

namespace weir::store::remote {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kDepth = 4;
constexpr std::size_t kMostCharges = 256;
constexpr std::size_t kMostBytes = wire::kMaxBytes / 4;
constexpr const char* kClosed = "weir: the store was closed";

/// Applications that are sent together.
struct Load {
  std::vector<Pending> pending;
  std::vector<Application*> applications;
};

/// True if a region's store answers it immediately.
bool IsOfRegion(const Application& application) noexcept {
  return application.region.term > 0 &&
         (application.op == Op::kLease || application.op == Op::kReturn);
}

/// Shared by the store and its calls in flight. Not thread-safe.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(asio::io_context& io, const Options& options, const weir::redis::Address& address)
      : io_(io), max_pending_(options.max_pending) {
    auto settings = weir::redis::ConnectionOptions::Of(address);
    settings.server = "weir";
    settings.connect_timeout = options.connect_timeout;
    settings.command_timeout = options.command_timeout;
    const std::size_t count = std::max<std::size_t>(options.connections, 1);
    for (std::size_t i = 0; i < count + 1; ++i) {
      lanes_.push_back(std::make_unique<Lane>(io, settings));
    }
  }

  void Apply(std::span<Application> applications, Done done);
  void Close();

 private:
  struct Lane {
    Lane(asio::io_context& io, const weir::redis::ConnectionOptions& options)
        : connection(std::make_unique<weir::redis::Connection>(io, options)) {}

    std::unique_ptr<weir::redis::Connection> connection;
    std::deque<Pending> waiting;
    std::size_t in_flight = 0;
  };

  void Add(Lane& lane, Application& application, const std::shared_ptr<Pending::Call>& call);
  void FlushSoon();
  void Pump(std::size_t lane);
  static std::shared_ptr<Load> Take(Lane& lane);
  void TakeAnswer(std::size_t lane, Load& load, const weir::redis::Answer& answer);

  asio::io_context& io_;
  const std::size_t max_pending_;
  bool closed_ = false;
  bool flushing_ = false;
  std::size_t pending_ = 0;
  std::size_t turn_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;  // the last is for what regions answer
};

void Core::Apply(std::span<Application> applications, Done done) {
  if (closed_) {
    for (Application& each : applications) each.status = Error{Code::kUnavailable, kClosed};
    return done();
  }
  auto call = std::make_shared<Pending::Call>();
  call->done = std::move(done);
  call->left = applications.size() + 1;  // and this call itself
  // All of one Apply on one connection, to keep their order.
  const bool regional = std::ranges::all_of(applications, IsOfRegion);
  turn_ = (turn_ + 1) % (lanes_.size() - 1);
  Lane& lane = regional ? *lanes_.back() : *lanes_[turn_];
  for (Application& application : applications) Add(lane, application, call);
  Pending{nullptr, call}.Complete();
}

void Core::Add(Lane& lane, Application& application, const std::shared_ptr<Pending::Call>& call) {
  const Pending pending{&application, call};
  application.status = {};
  const auto refuse = [&](Code code, const char* why) {
    application.status = Error{code, why};
    pending.Complete();
  };
  if (application.charges.empty()) {
    application.applied = true;
    return pending.Complete();
  }
  const bool too_long = std::ranges::any_of(application.charges, [](const Charge& charge) {
    return charge.key.size() > wire::kMaxKeyBytes;
  });
  if (too_long || application.charges.size() > kMostCharges * 4 ||
      wire::SizeOf(application) > wire::kMaxBytes / 2) {
    return refuse(Code::kInvalidArgument, "weir: too many or too long keys in one check");
  }
  if (pending_ >= max_pending_) {
    return refuse(Code::kResourceExhausted, "weir: too many checks are waiting for the store");
  }
  ++pending_;
  lane.waiting.push_back(pending);
  FlushSoon();
}

void Core::FlushSoon() {
  if (std::exchange(flushing_, true)) return;
  asio::post(io_, [self = shared_from_this()] {
    self->flushing_ = false;
    if (self->closed_) return;
    for (std::size_t i = 0; i < self->lanes_.size(); ++i) self->Pump(i);
  });
}

void Core::Pump(std::size_t index) {
  Lane& lane = *lanes_[index];
  while (lane.in_flight < kDepth && !lane.waiting.empty()) {
    const std::shared_ptr<Load> load = Take(lane);
    ++lane.in_flight;
    weir::redis::Command command{"WEIR.APPLY"};
    command.Add(wire::WriteQuestion(load->applications));
    lane.connection->Send(std::move(command),
                          [self = shared_from_this(), index, load](const auto& answer) {
                            self->TakeAnswer(index, *load, answer);
                          });
  }
}

std::shared_ptr<Load> Core::Take(Lane& lane) {
  auto load = std::make_shared<Load>();
  std::size_t charges = 0;
  std::size_t bytes = 0;
  while (!lane.waiting.empty()) {
    const Application& next = *lane.waiting.front().application;
    charges += next.charges.size();
    bytes += wire::SizeOf(next);
    if (!load->pending.empty() && (charges > kMostCharges || bytes > kMostBytes)) break;
    load->applications.push_back(lane.waiting.front().application);
    load->pending.push_back(std::move(lane.waiting.front()));
    lane.waiting.pop_front();
  }
  return load;
}

void Core::TakeAnswer(std::size_t index, Load& load, const weir::redis::Answer& answer) {
  Status status = answer.status;
  if (status.ok() && answer.reply.kind != weir::redis::Reply::Kind::kText) {
    status = Error{Code::kInternal, "weir: unexpected answer to WEIR.APPLY"};
  }
  if (status.ok()) status = wire::ReadAnswer(answer.reply.text, load.applications);
  pending_ -= load.pending.size();
  if (!closed_) {
    --lanes_[index]->in_flight;
    Pump(index);
  }
  for (const Pending& pending : load.pending) {
    if (!status.ok()) pending.application->status = status;
    pending.Complete();
  }
}

void Core::Close() {
  closed_ = true;
  auto lanes = std::exchange(lanes_, {});
  for (const auto& lane : lanes) {
    lane->connection.reset();  // answers what is in flight
    for (const Pending& pending : lane->waiting) {
      pending.application->status = Error{Code::kUnavailable, kClosed};
      pending.Complete();
    }
  }
}

class RemoteStore final : public Store {
 public:
  explicit RemoteStore(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~RemoteStore() override { core_->Close(); }
  RemoteStore(const RemoteStore&) = delete;
  RemoteStore& operator=(const RemoteStore&) = delete;

  void Apply(std::span<Application> batch, Done done) override {
    core_->Apply(batch, std::move(done));
  }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace

Result<std::unique_ptr<Store>> MakeStore(asio::io_context& io, const Options& options) {
  const Result<weir::redis::Address> address = ParseUrl(options.url);
  if (!address.ok()) return address.error();
  auto core = std::make_shared<Core>(io, options, *address);
  return std::unique_ptr<Store>(std::make_unique<RemoteStore>(std::move(core)));
}

}  // namespace weir::store::remote
