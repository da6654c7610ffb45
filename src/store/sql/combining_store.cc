#include "store/sql/combining_store.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace weir::store::sql {

namespace asio = boost::asio;

void Origin::Expect(const std::shared_ptr<Submission>& submission) {
  if (expected_.empty()) work_.emplace(io_.get_executor());
  expected_.insert(submission);
}

void Origin::Return(std::shared_ptr<Submission> submission) {
  const std::lock_guard hold(mutex_);
  if (closed_) return;
  returned_.push_back(std::move(submission));
  if (posted_) return;
  posted_ = true;
  asio::post(io_, [self = shared_from_this()] { self->DeliverAll(); });
}

void Origin::DeliverAll() {
  std::vector<std::shared_ptr<Submission>> returned;
  {
    const std::lock_guard hold(mutex_);
    returned.swap(returned_);
    posted_ = false;
  }
  for (const std::shared_ptr<Submission>& submission : returned) {
    // A callback may have closed the store, which then gave up the rest.
    if (closed_) return;
    expected_.erase(submission);
    if (expected_.empty()) work_.reset();
    submission->Deliver();
  }
}

void Origin::Close() {
  {
    const std::lock_guard hold(mutex_);
    closed_ = true;
    returned_.clear();
  }
  work_.reset();
  const Error error{Code::kUnavailable, "the store was closed"};
  for (const auto& submission : std::exchange(expected_, {})) submission->GiveUp(error);
}

CombiningStore::CombiningStore(asio::io_context& io, Combiner& combiner, std::shared_ptr<void> keep)
    : keep_(std::move(keep)), combiner_(combiner), origin_(std::make_shared<Origin>(io)) {}

CombiningStore::~CombiningStore() { origin_->Close(); }

void CombiningStore::Apply(std::span<Application> batch, Done done) {
  if (batch.empty()) return done();
  auto submission = std::make_shared<Submission>(batch, std::move(done), combiner_.hash());
  submission->origin = origin_;
  origin_->Expect(submission);
  combiner_.Submit(std::move(submission));
}

}  // namespace weir::store::sql
