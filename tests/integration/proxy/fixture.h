#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "net/reactor_pool.h"
#include "proxy/door.h"
#include "support/http_client.h"
#include "support/tcp_server.h"

namespace weir::proxy {

/// Allows the first `limit` requests of each client address and records its checks.
class FirstFew final : public limiter::Limiter {
 public:
  explicit FirstFew(std::int64_t limit)
      : limit_(limit), quota_(*Quota::FixedWindow(limit, std::chrono::seconds(60))) {}

  void Decide(std::span<limiter::Check> checks, store::Done done) override {
    for (limiter::Check& check : checks) {
      const std::lock_guard lock(mutex_);
      seen_.clear();
      for (const policy::Entry& entry : check.request.descriptors[0]) {
        seen_[std::string(entry.key)] = entry.value;
      }
      const std::int64_t used = ++used_[seen_["ip"]];
      check.decision = {};
      check.decision.limit = limit_;
      check.decision.remaining = std::max<std::int64_t>(limit_ - used, 0);
      check.decision.reset_after = std::chrono::seconds(60);
      if (used > limit_) {
        check.decision.verdict = Verdict::kLimited;
        check.decision.retry_after = std::chrono::milliseconds(6'500);
      }
      limiter::PolicyVerdict verdict;
      verdict.policy = "few";
      verdict.quota = &quota_;
      verdict.decision = check.decision;
      check.verdicts.assign(1, verdict);
    }
    done();
  }
  void Apply(std::span<store::Application>, store::Done done) override { done(); }

  void NoteRejection(const limiter::Rejection& rejection) override {
    const std::lock_guard lock(mutex_);
    rejected_ = std::string(rejection.address) + ": " + std::string(rejection.reason);
  }

  /// Of the last request that was refused without a check.
  std::string rejected() {
    const std::lock_guard lock(mutex_);
    return rejected_;
  }
  std::map<std::string, std::string> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  const std::int64_t limit_;
  const Quota quota_;
  std::mutex mutex_;
  std::map<std::string, std::int64_t> used_;
  std::map<std::string, std::string> seen_;
  std::string rejected_;
};

/// A proxy on one reactor in front of a scripted upstream.
class ProxyTest : public ::testing::Test {
 protected:
  ~ProxyTest() override { StopProxy(); }

  /// `serve` may run after the test's body has ended, until the fixture is destroyed: it may use
  /// what it owns, or members of the fixture, but no references to local variables of the body.
  void StartUpstream(test::TcpServer::Serve serve) { upstream_.emplace(std::move(serve)); }

  /// Answers every request with `response`; the requests' heads are kept.
  void AnswerAlways(std::string response) {
    StartUpstream([this, response = std::move(response)](test::TcpConnection& connection) {
      while (true) {
        Remember(connection.ReadThrough("\r\n\r\n"));
        connection.Send(response);
      }
    });
  }

  void StartProxy(std::optional<std::int64_t> limit = {}) {
    if (options_.upstreams.empty()) AddUpstream(upstream_->port());
    if (limit) limiter_.emplace(*limit);
    door_ = std::make_unique<ProxyDoor>(options_);
    pool_ = std::make_unique<net::ReactorPool>(net::PoolOptions{.reactors = 1});
    door_->AddReactor(pool_->reactor(0), limiter_ ? &*limiter_ : nullptr);
    const auto endpoint = pool_->Listen(*door_, "127.0.0.1:0");
    ASSERT_TRUE(endpoint) << endpoint.error().message;
    port_ = endpoint->port();
    pool_->Start();
  }

  void StopProxy() {
    if (!pool_) return;
    pool_->Stop();
    door_->Clear();
    pool_.reset();
  }

  void AddUpstream(std::uint16_t port) {
    options_.upstreams.push_back(*ResolveUpstream("http://127.0.0.1:" + std::to_string(port)));
  }

  void Remember(std::string head) {
    const std::lock_guard lock(mutex_);
    heads_.push_back(std::move(head));
  }
  std::vector<std::string> heads() {
    const std::lock_guard lock(mutex_);
    return heads_;
  }
  const ProxyStats& stats() const { return door_->stats(0); }
  std::string Scraped() const {
    std::string text;
    telemetry::TextWriter out(text);
    CollectProxy(*door_, out);
    return text;
  }

  std::mutex mutex_;
  std::vector<std::string> heads_;
  std::optional<test::TcpServer> upstream_;
  ProxyOptions options_;
  std::optional<FirstFew> limiter_;
  std::unique_ptr<ProxyDoor> door_;
  std::unique_ptr<net::ReactorPool> pool_;
  std::uint16_t port_ = 0;
};

}  // namespace weir::proxy
