// Another Weir as the store. If time must pass: a `weir serve` with the memory store. If the test's
// clock decides: the RESP endpoint in this process, on sockets like any other.

#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "conformance/store/store_backend.h"
#include "limiter/limiter.h"
#include "net/reactor_pool.h"
#include "service/resp_door.h"
#include "store/memory/memory_store.h"
#include "store/remote/remote_store.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::store::conformance {
namespace {

std::unique_ptr<Store> Connect(boost::asio::io_context& io, std::uint16_t port) {
  auto store = remote::MakeStore(io, {.url = "weir://127.0.0.1:" + std::to_string(port),
                                      .connections = 2,
                                      .command_timeout = std::chrono::seconds(20)});
  if (!store.ok()) throw std::runtime_error(store.error().message);
  return *std::move(store);
}

class ProgramBackend final : public Backend {
 public:
  ProgramBackend()
      : weir_({"serve", "--http", "off", "--grpc", "off", "--resp", "127.0.0.1:0", "--data",
               dir_.path().string(), "--threads", "2", "--log-level", "error"}),
        port_(weir_.Port("resp")) {}

  std::unique_ptr<Store> MakeStore(boost::asio::io_context& io, int) override {
    return Connect(io, port_);
  }

 private:
  test::TempDir dir_;
  test::WeirProcess weir_;
  const std::uint16_t port_;
};

/// Passes applications to the memory store, as the limiter of a service does.
class StoreLimiter final : public limiter::Limiter {
 public:
  explicit StoreLimiter(Engine& engine) : store_(engine) {}
  void Decide(std::span<limiter::Check>, Done done) override { done(); }
  void Apply(std::span<Application> batch, Done done) override {
    store_.Apply(batch, std::move(done));
  }

 private:
  memory::MemoryStore store_;
};

class DoorBackend final : public Backend {
 public:
  explicit DoorBackend(const Clock* clock)
      : engine_(
            *Quota::TokenBucket(1, 1),
            EngineOptions{
                .max_keys = 100'000, .keys = KeyStorage::kText, .clock = clock, .on_evict = {}}),
        limiter_(engine_) {
    service::RespOptions options;
    options.hooks.stores = [](std::string_view, std::string_view) { return true; };
    door_.emplace(
        1, [this](net::Reactor&) -> limiter::Limiter& { return limiter_; }, std::move(options));
    pool_.emplace(net::PoolOptions{.reactors = 1});
    const auto endpoint = pool_->Listen(*door_, "127.0.0.1:0");
    if (!endpoint.ok()) throw std::runtime_error(endpoint.error().message);
    port_ = endpoint->port();
    pool_->Start();
  }
  ~DoorBackend() override { pool_.reset(); }
  DoorBackend(const DoorBackend&) = delete;
  DoorBackend& operator=(const DoorBackend&) = delete;

  std::unique_ptr<Store> MakeStore(boost::asio::io_context& io, int) override {
    return Connect(io, port_);
  }

 private:
  Engine engine_;
  StoreLimiter limiter_;
  std::optional<service::RespDoor> door_;
  std::optional<net::ReactorPool> pool_;
  std::uint16_t port_ = 0;
};

}  // namespace

std::unique_ptr<Backend> MakeBackend(const Clock* clock) {
  if (clock == nullptr) return std::make_unique<ProgramBackend>();
  return std::make_unique<DoorBackend>(clock);
}

}  // namespace weir::store::conformance
