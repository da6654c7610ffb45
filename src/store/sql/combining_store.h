#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "store/sql/combiner.h"
#include "store/store.h"

namespace weir::store::sql {

/// The way back from the lanes to the reactor that submitted: answers that are ready at the same
/// time are posted together.
///
/// Thread-safe.
class Origin : public std::enable_shared_from_this<Origin> {
 public:
  explicit Origin(boost::asio::io_context& io) : io_(io) {}

  /// On the reactor's thread.
  void Expect(const std::shared_ptr<Submission>& submission);
  /// On any thread.
  void Return(std::shared_ptr<Submission> submission);
  /// On the reactor's thread. Outstanding submissions fail, and are dropped when they come back.
  void Close();

 private:
  void DeliverAll();

  boost::asio::io_context& io_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Submission>> returned_;
  bool posted_ = false;
  bool closed_ = false;
  // The reactor's: keeps its loop running while answers are out.
  std::unordered_set<std::shared_ptr<Submission>> expected_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
};

/// The store of one reactor, in front of a combiner that all reactors share.
///
/// Thread safety: belongs to the thread that runs `io`.
class CombiningStore final : public Store {
 public:
  /// `combiner` must outlive the store; `keep`, held for as long, keeps its owner alive.
  CombiningStore(boost::asio::io_context& io, Combiner& combiner, std::shared_ptr<void> keep);
  /// Pending calls are answered inside.
  ~CombiningStore() override;
  CombiningStore(const CombiningStore&) = delete;
  CombiningStore& operator=(const CombiningStore&) = delete;

  void Apply(std::span<Application> batch, Done done) override;

 private:
  const std::shared_ptr<void> keep_;
  Combiner& combiner_;
  const std::shared_ptr<Origin> origin_;
};

}  // namespace weir::store::sql
