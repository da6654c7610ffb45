#include "store_load.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "store/guard/guarded_store.h"

namespace weir::bench {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kClients = 1024;
constexpr std::size_t kManyKeys = 100'000;

// Never runs out, so that every check is written.
Quota Plenty() { return *Quota::TokenBucket(1'000'000'000, 1'000'000'000); }

store::guard::GuardOptions PatientGuard() {
  store::guard::GuardOptions options;
  options.timeout = std::chrono::seconds(5);
  options.cache.max_keys = 0;
  return options;
}

/// Makes one check at a time.
class Client {
 public:
  void Ask(store::Store& store, std::string_view key, store::Done done) {
    charge_ = {key, 1, &quota_};
    application_.charges = {&charge_, 1};
    application_.decisions = {&decision_, 1};
    store.Apply({&application_, 1}, std::move(done));
  }
  void Require() const {
    if (application_.status.ok() && application_.applied) return;
    std::fprintf(
        stderr, "stores: %s\n",
        application_.status.ok() ? "refused" : application_.status.error().message.c_str());
    std::exit(1);
  }

 private:
  static inline const Quota quota_ = Plenty();
  store::Charge charge_;
  Decision decision_;
  store::Application application_;
};

std::vector<std::string> Keys(std::size_t count) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back("api|per-user|user:" + std::to_string(i));
  return keys;
}

/// Clients that send again as soon as they are answered.
class ClosedLoop {
 public:
  ClosedLoop(store::Store& store, const std::vector<std::string>& keys)
      : store_(store), keys_(keys), clients_(kClients) {}

  void Start() {
    for (Client& client : clients_) AskNext(client);
  }
  void Stop() { stopping_ = true; }
  std::size_t answered() const { return answered_; }
  bool idle() const { return out_ == 0; }

 private:
  void AskNext(Client& client) {
    ++out_;
    client.Ask(store_, keys_[random_() % keys_.size()], [this, &client] {
      --out_;
      ++answered_;
      client.Require();
      if (!stopping_) AskNext(client);
    });
  }

  store::Store& store_;
  const std::vector<std::string>& keys_;
  std::vector<Client> clients_;
  std::minstd_rand random_{1};
  std::size_t answered_ = 0;
  std::size_t out_ = 0;
  bool stopping_ = false;
};

}  // namespace

double MeasureRate(const MakeStore& make, std::size_t key_count, double seconds) {
  const std::vector<std::string> keys = Keys(key_count);
  boost::asio::io_context io(1);
  store::guard::Guard guard(PatientGuard());
  store::guard::GuardedStore store(io, guard, make(io));
  ClosedLoop loop(store, keys);
  loop.Start();
  const auto run = [&io](double for_seconds) {
    const auto deadline = steady_clock::now() + std::chrono::duration<double>(for_seconds);
    while (steady_clock::now() < deadline) {
      io.restart();
      io.run_one_for(std::chrono::milliseconds(10));
    }
  };
  run(seconds / 2);
  const std::size_t before = loop.answered();
  const auto began = steady_clock::now();
  run(seconds);
  const double took = std::chrono::duration<double>(steady_clock::now() - began).count();
  const double rate = static_cast<double>(loop.answered() - before) / took;
  loop.Stop();
  while (!loop.idle()) {
    io.restart();
    io.run_one_for(std::chrono::milliseconds(10));
  }
  return rate;
}

Latency MeasureLatency(const MakeStore& make, double seconds) {
  const std::vector<std::string> keys = Keys(kManyKeys);
  boost::asio::io_context io(1);
  store::guard::Guard guard(PatientGuard());
  store::guard::GuardedStore store(io, guard, make(io));
  const auto total = static_cast<std::size_t>(seconds * 1000);
  constexpr std::size_t kWarmUp = 500;
  std::vector<Client> clients(total);
  std::vector<double> taken;
  std::minstd_rand random(1);
  boost::asio::steady_timer timer(io);
  std::size_t asked = 0;
  std::size_t out = 0;
  auto due = steady_clock::now();
  // Sent when due, whether or not the one before has been answered.
  const std::function<void()> tick = [&] {
    for (; asked < total && steady_clock::now() >= due; due += std::chrono::milliseconds(1)) {
      Client& client = clients[asked];
      const bool counted = asked++ >= kWarmUp;
      ++out;
      const auto sent = steady_clock::now();
      client.Ask(store, keys[random() % keys.size()], [&, sent, counted] {
        --out;
        client.Require();
        const std::chrono::duration<double, std::milli> took = steady_clock::now() - sent;
        if (counted) taken.push_back(took.count());
      });
    }
    if (asked == total) return;
    timer.expires_at(due);
    timer.async_wait([&](const boost::system::error_code&) { tick(); });
  };
  tick();
  while (asked < total || out > 0) {
    io.restart();
    io.run_one_for(std::chrono::milliseconds(10));
  }
  std::sort(taken.begin(), taken.end());
  return {taken[taken.size() / 2], taken[taken.size() * 99 / 100]};
}

}  // namespace weir::bench
