#pragma once

// Subscribes to resources of one type at a control plane: the aggregated discovery service of xDS
// v3, "state of the world". Every answer is the whole state; it is put in force and acknowledged,
// or refused with the reason, and then the previous state stays in force.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "drivers/xds/grpc_stream.h"
#include "weir/result.h"

namespace weir::xds {

/// All resources, as serialized messages. Sorted, since control planes send them in
/// any order and the same state should look the same.
struct State {
  std::string version;
  std::vector<std::string> resources;
};

/// To keep a state across restarts of the process.
std::string Serialize(const State& state);
Result<State> ParseState(std::string_view bytes);

struct SubscriptionOptions {
  Server server;
  std::string node_id;
  std::string type_url;
  std::string user_agent_version;
  /// Puts a state in force; the error says why not, for the control plane's operators. Called on
  /// the subscription's thread.
  std::function<Status(const State&)> on_state;
  /// The control plane is available (an empty text), or why it is not. Called when that changes.
  std::function<void(const std::string& problem)> on_change;
  std::chrono::milliseconds first_pause{500};  ///< before the next attempt; then twice as long
  std::chrono::milliseconds longest_pause{10'000};
  /// Before the same state is refused again: some control planes resend it immediately.
  std::chrono::milliseconds refusal_pause{1'000};
};

/// Thread safety: any thread may read its counters; the destructor ends its thread.
class Subscription {
 public:
  explicit Subscription(SubscriptionOptions options);
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  bool connected() const noexcept { return connected_.load(std::memory_order_relaxed); }
  std::uint64_t accepted() const noexcept { return accepted_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

 private:
  void Run();
  bool Converse();
  Status Judge(const State& state);
  void Answer(GrpcStream& stream, const std::string& message, std::string& in_force);
  void Tell(const std::string& problem);
  bool Pause(std::chrono::milliseconds time);
  bool stopping();

  const SubscriptionOptions options_;
  std::atomic<bool> connected_{false};
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> refused_{0};
  bool told_ = false;        // on_change was called
  std::string refused_was_;  // the last state, if it was refused, without its version
  Status why_refused_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stopping_ = false;
  GrpcStream* stream_ = nullptr;
  std::thread thread_;
};

}  // namespace weir::xds
