#include "trial/key_reader.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace weir::app {
namespace {

void Tell(boost::asio::io_context& io, KeyReader::Done done, Result<store::KeyPage> page) {
  boost::asio::post(
      io, [done = std::move(done), page = std::move(page)]() mutable { done(std::move(page)); });
}

}  // namespace

KeyReader::~KeyReader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void KeyReader::Ask(store::KeyQuery query, boost::asio::io_context& io, Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < kMaxWaiting) {
      waiting_.push_back({std::move(query), &io, std::move(done)});
      changed_.notify_one();
      return;
    }
  }
  Tell(io, std::move(done),
       Error{Code::kResourceExhausted, "too many key listings are running; try again"});
}

void KeyReader::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Asked asked = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Result<store::KeyPage> page = read_(asked.query);
    Tell(*asked.io, std::move(asked.done), std::move(page));
    lock.lock();
  }
}

}  // namespace weir::app
