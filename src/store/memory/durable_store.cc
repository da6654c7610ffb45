#include "store/memory/durable_store.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace weir::store::memory {
namespace {

bool HasChanged(const Application& application) {
  switch (application.op) {
    case Op::kPeek:
      return false;
    case Op::kCharge:
    case Op::kRelease:
    case Op::kLease:
    case Op::kSettle:
      return application.applied;
    default:
      return true;
  }
}

/// Whether an operation that cannot be written is answered as failed. A refund is not: a caller
/// that sees an error repeats it, and would be refunded each time (see FailsInPart). It is safe if
/// a crash forgets it.
bool FailsUnwritten(Op op) { return op != Op::kRefund && op != Op::kReturn; }

}  // namespace

/// The batches of one reactor that wait for the disk. On the reactor's thread, except for
/// Return.
class DurableStore::Desk : public std::enable_shared_from_this<Desk> {
 public:
  Desk(boost::asio::io_context& io, Engine& engine) : io_(io), engine_(engine) {}

  std::uint64_t Add(std::span<Application> batch, Done done) {
    if (!work_) work_.emplace(io_.get_executor());
    waiting_.emplace(++last_, Waiting{batch, std::move(done)});
    return last_;
  }

  /// On the journal's thread. The loop may be destroyed as soon as the store is: nothing is posted
  /// after Close, nor is a post still in progress when it returns.
  void Return(std::uint64_t number, const Status& status) {
    const std::lock_guard hold(mutex_);
    if (closed_) return;
    boost::asio::post(
        io_, [self = shared_from_this(), number, status] { self->Answer(number, status); });
  }

  void Close() {
    {
      const std::lock_guard hold(mutex_);
      closed_ = true;
    }
    const Status closed = Error{Code::kUnavailable, "the store is closed"};
    while (!waiting_.empty()) Answer(waiting_.begin()->first, closed);
  }

 private:
  struct Waiting {
    std::span<Application> batch;
    Done done;
  };

  void Answer(std::uint64_t number, const Status& status) {
    const auto found = waiting_.find(number);
    if (found == waiting_.end()) return;  // closed in the meantime
    const Waiting waiting = std::move(found->second);
    waiting_.erase(found);
    if (waiting_.empty()) work_.reset();
    if (!status.ok()) {
      for (Application& application : waiting.batch) {
        if (!HasChanged(application) || !FailsUnwritten(application.op)) continue;
        Release(application);
        application.status = status;
      }
    }
    waiting.done();
  }

  /// Permits in flight of a failed call have no owner: the caller never learns their names.
  void Release(const Application& application) {
    if (application.op != Op::kCharge && application.op != Op::kLease) return;
    for (std::size_t i = 0; i < application.charges.size(); ++i) {
      const std::int64_t lease = application.decisions[i].lease;
      const Charge& charge = application.charges[i];
      if (lease != 0) engine_.Release(charge.key, *charge.quota, lease);
    }
  }

  boost::asio::io_context& io_;
  Engine& engine_;
  std::mutex mutex_;
  bool closed_ = false;  // guarded by mutex_
  std::unordered_map<std::uint64_t, Waiting> waiting_;
  std::uint64_t last_ = 0;
  // Keeps the loop running while answers are out.
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
};

DurableStore::DurableStore(boost::asio::io_context& io, Engine& engine, Journal& journal)
    : memory_(engine), journal_(journal), desk_(std::make_shared<Desk>(io, engine)) {}

DurableStore::~DurableStore() { desk_->Close(); }

void DurableStore::Apply(std::span<Application> batch, Done done) {
  const std::uint64_t drops = journal_.drops();
  memory_.Apply(batch, [] {});
  if (std::none_of(batch.begin(), batch.end(), HasChanged)) return done();
  const std::uint64_t number = desk_->Add(batch, std::move(done));
  journal_.Await(drops,
                 [desk = desk_, number](const Status& status) { desk->Return(number, status); });
}

}  // namespace weir::store::memory
