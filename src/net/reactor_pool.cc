#include "net/reactor_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <latch>
#include <string>
#include <utility>

namespace weir::net {
namespace {

std::size_t UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
}

}  // namespace

ReactorPool::ReactorPool(PoolOptions options) {
  const std::size_t count = options.reactors != 0 ? options.reactors : UsableCores();
  const std::size_t share = std::max<std::size_t>(1, options.max_connections / count);
  ClientBound clients = std::move(options.clients);
  if (clients.most != 0) clients.most = std::max<std::size_t>(1, clients.most / count);
  for (std::size_t i = 0; i < count; ++i) {
    reactors_.push_back(std::make_unique<Reactor>(i, share, clients));
  }
}

ReactorPool::~ReactorPool() { Stop(); }

Result<Endpoint> ReactorPool::Listen(Door& door, std::string_view address) {
  Result<Endpoint> endpoint = ParseEndpoint(address);
  if (!endpoint) return endpoint;
  Port port = Port::kTake;
  for (const auto& reactor : reactors_) {
    auto listener = std::make_unique<Listener>(*reactor, door);
    // The first one chooses the port if it is 0; the others join it.
    endpoint = listener->Open(*endpoint, std::exchange(port, Port::kJoin));
    if (!endpoint) return endpoint;
    reactor->Add(std::move(listener));
  }
  return endpoint;
}

void ReactorPool::Start() {
  for (const auto& reactor : reactors_) {
    threads_.emplace_back([&reactor = *reactor] { reactor.Run(); });
    const std::string name = "reactor-" + std::to_string(reactor->index());
    pthread_setname_np(threads_.back().native_handle(), name.c_str());
  }
}

bool ReactorPool::Drain(std::chrono::milliseconds patience) {
  if (threads_.empty()) return true;
  std::latch drained(static_cast<std::ptrdiff_t>(reactors_.size()));
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (const auto& reactor : reactors_) {
    boost::asio::post(reactor->context(), [&reactor = *reactor, &drained, patience] {
      reactor.Drain(patience, [&drained] { drained.count_down(); });
    });
  }
  drained.wait();
  return std::chrono::steady_clock::now() < deadline;
}

void ReactorPool::Stop() {
  for (const auto& reactor : reactors_) reactor->Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace weir::net
