#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "conformance/store/store_backend.h"
#include "store/store.h"

namespace weir::store::conformance {

/// A store with blocking calls on the calling thread. Throws std::runtime_error if the store could
/// not decide.
///
/// Not thread-safe: one per thread.
class Client {
 public:
  explicit Client(Backend& backend, int node = 0) : store_(backend.MakeStore(io_, node)) {}

  Decision Charge(std::string_view key, const Quota& quota, std::int64_t cost = 1) {
    return One(Op::kCharge, {key, cost, &quota});
  }
  Decision Peek(std::string_view key, const Quota& quota, std::int64_t cost = 0) {
    return One(Op::kPeek, {key, cost, &quota});
  }
  Decision Refund(std::string_view key, const Quota& quota, std::int64_t cost = 1) {
    return One(Op::kRefund, {key, cost, &quota});
  }
  Decision Reset(std::string_view key, const Quota& quota) {
    return One(Op::kReset, {key, 0, &quota});
  }
  bool Release(std::string_view key, const Quota& quota, std::int64_t lease) {
    One(Op::kRelease, {key, 0, &quota}, lease);
    return applied_;
  }

  /// Applied all or none; the decisions are those of the charges.
  struct Group {
    bool applied = false;
    std::vector<Decision> decisions;
  };
  Group ChargeAll(std::vector<weir::store::Charge> charges) {
    Group group;
    group.decisions.resize(charges.size());
    Application application;
    application.charges = charges;
    application.decisions = group.decisions;
    Apply(std::span(&application, 1));
    group.applied = application.applied;
    return group;
  }

  /// Waits for the answers, which may be errors.
  void ApplyAnyhow(std::span<Application> batch) {
    bool done = false;
    const auto work = boost::asio::make_work_guard(io_);
    io_.restart();
    store_->Apply(batch, [&done] { done = true; });
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done && std::chrono::steady_clock::now() < deadline) {
      io_.run_one_for(std::chrono::seconds(1));
    }
    // Returning would free memory that the store may still write to.
    if (!done) std::terminate();
  }
  void Apply(std::span<Application> batch) {
    ApplyAnyhow(batch);
    for (const Application& application : batch) {
      if (!application.status.ok()) throw std::runtime_error(application.status.error().message);
    }
  }

  /// Whether the last single call was applied.
  bool applied() const noexcept { return applied_; }

 private:
  Decision One(Op op, weir::store::Charge charge, std::int64_t lease = 0) {
    Decision decision;
    Application application;
    application.op = op;
    application.charges = std::span(&charge, 1);
    application.decisions = std::span(&decision, 1);
    application.lease = lease;
    Apply(std::span(&application, 1));
    applied_ = application.applied;
    return decision;
  }

  boost::asio::io_context io_{1};
  std::unique_ptr<Store> store_;
  bool applied_ = false;
};

}  // namespace weir::store::conformance
