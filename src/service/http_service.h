#pragma once

// The HTTP door: its options, and what the connections of one reactor share.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/ip.h"
#include "base/memory_budget.h"
#include "filter/headers.h"
#include "limiter/limiter.h"
#include "net/door_metrics.h"
#include "net/reactor.h"
#include "net/stream.h"
#include "protocol/http/check_reader.h"
#include "protocol/http/request_parser.h"
#include "protocol/http/response_writer.h"
#include "protocol/http/router.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "weir/clock.h"

namespace weir::net {
class TlsContext;
}

namespace weir::service {

class HttpExchanges;

/// Which fields hold the path and method that a proxy asks GET /v1/auth about. A client can send
/// the pair that its proxy does not set, so a request that has fields of both is refused.
enum class AuthTarget : std::uint8_t {
  kAuto,       ///< whichever pair is present
  kOriginal,   ///< X-Original-URI, -Method: nginx. A question without it is refused
  kForwarded,  ///< X-Forwarded-Uri, -Method: Traefik, Caddy. A question without it is refused
  kNone,       ///< neither: there are no entries `route` and `method`
};

/// How GET /v1/auth reads the request that a proxy asks about.
struct AuthOptions {
  std::vector<IpNetwork> trusted_proxies;  ///< whose X-Forwarded-For counts
  IpGrouping grouping;
  std::string api_key_header = "X-API-Key";
  std::string user_header = "X-User-Id";
  AuthTarget target = AuthTarget::kAuto;
  bool default_applies = true;  ///< apply the default policy where no other applies
};

struct HttpOptions {
  http::ParserLimits limits;
  filter::HeaderChoice headers;
  AuthOptions auth;
  net::Stream::Times times;
  /// Whether a caller may check, or return what it took; called before anything is decided. Empty:
  /// everyone may. Thread-safe; must not block.
  using Authorize = std::function<Status(const http::Request& request, std::string_view remote)>;
  Authorize authorize_check;
  Authorize authorize_give_back;
  /// Called for each refund ("check.refund"), release ("check.release") and settlement
  /// ("check.settle") that goes to the limiter.
  /// May be empty. Thread-safe; must not block.
  std::function<void(const http::Request& request, std::string_view remote, std::string_view action,
                     std::size_t count)>
      on_give_back;
  /// What buffered requests of one reactor may hold in memory; beyond it large ones are refused.
  std::size_t buffer_budget = std::size_t{64} << 20U;
  /// What answers that wait for their clients may hold; beyond it the largest holders are cut off.
  std::size_t answer_budget = std::size_t{64} << 20U;
};

/// Written by the reactor's thread, read by scrapes.
struct HttpMetrics {
  net::DoorMetrics checks;
  std::array<telemetry::LocalCounter, 6> responses;  ///< by the status's first digit
  telemetry::LocalCounter timeouts;
};

/// What all HTTP connections of one reactor share.
///
/// Thread safety: for the reactor's thread; metrics may be read from any.
class HttpWorker {
 public:
  HttpWorker(net::Reactor& reactor, const HttpOptions& options, const http::Router& router,
             limiter::Limiter& limiter);
  ~HttpWorker();
  HttpWorker(const HttpWorker&) = delete;
  HttpWorker& operator=(const HttpWorker&) = delete;

  net::Reactor& reactor() noexcept { return reactor_; }
  const HttpOptions& options() const noexcept { return options_; }
  const http::Router& router() const noexcept { return router_; }
  limiter::Limiter& limiter() noexcept { return limiter_; }
  http::CheckReader& reader() noexcept { return reader_; }
  HttpMetrics& metrics() noexcept { return metrics_; }
  const HttpMetrics& metrics() const noexcept { return metrics_; }

  Nanos Now() const noexcept { return SystemClock::Get().Now(); }
  /// The Date header as of `now`.
  std::string_view Date(Nanos now) { return date_.At(now / 1'000'000'000); }

  /// True if a log line that clients can trigger at will may be written now.
  bool MayLog(Nanos now) noexcept { return throttle_.Allow(now / 1'000'000'000); }

  /// A batch, whose memory is reused; return it with GiveBack.
  std::unique_ptr<HttpExchanges> TakeExchanges();
  void GiveBack(std::unique_ptr<HttpExchanges> exchanges);

  /// Accounts for bytes that connections hold in buffers; false if their total exceeds the budget.
  bool Account(std::size_t before, std::size_t after) noexcept {
    buffered_ = buffered_ - before + after;
    return buffered_ <= options_.buffer_budget;
  }

  /// Lends memory for the answers to a burst, and takes it back when they are sent: so idle
  /// connections keep none, and busy ones do not allocate it again and again.
  void Lend(std::string& output) noexcept;
  void TakeBack(std::string& output) noexcept;

  /// The memory of answers that wait for their clients.
  MemoryBudget& answers() noexcept { return answers_; }

  /// This many keys and descriptors of a request are to be decided in parts; until EndParts it
  /// waits for its turns, with all that it holds. False: too many already do.
  bool BeginParts(std::size_t parts) noexcept {
    if (in_parts_ != 0 && in_parts_ + parts > kMostInParts) return false;
    in_parts_ += parts;
    return true;
  }
  void EndParts(std::size_t parts) noexcept { in_parts_ -= parts; }

  /// Adds a connection beyond the limit, for requests that must always be answered. The oldest one
  /// is closed when there are too many of them.
  void AddUrgent(net::Connection& connection);
  void RemoveUrgent(const net::Connection& connection) noexcept;

  /// True on the thread whose replies need no hop.
  bool OnOwnThread() const noexcept { return thread_ == std::this_thread::get_id(); }
  void BindToThisThread() noexcept { thread_ = std::this_thread::get_id(); }

 private:
  static constexpr std::size_t kMostInParts = 32'768;

  net::Reactor& reactor_;
  const HttpOptions& options_;
  const http::Router& router_;
  limiter::Limiter& limiter_;
  http::CheckReader reader_;
  http::DateCache date_;
  HttpMetrics metrics_;
  telemetry::LogThrottle throttle_;
  std::vector<std::unique_ptr<HttpExchanges>> spare_;
  std::vector<std::string> spare_output_;
  std::vector<net::Connection*> urgent_;
  std::size_t buffered_ = 0;
  std::size_t in_parts_ = 0;
  MemoryBudget answers_;
  std::thread::id thread_;
};

/// Speaks HTTP/1.1 on every reactor. Thread safety: as Door.
class HttpDoor final : public net::Door {
 public:
  /// One worker per reactor, in their order; all must outlive the connections. `tls` null:
  /// plaintext.
  explicit HttpDoor(std::vector<HttpWorker*> workers,
                    std::shared_ptr<net::TlsContext> tls = nullptr)
      : workers_(std::move(workers)), tls_(std::move(tls)) {}

  std::string_view name() const noexcept override { return "http"; }
  void Accept(net::Reactor& reactor, net::Socket socket) override;
  /// Answers /healthz, /readyz, /metrics and /admin, and nothing else.
  void AcceptUrgent(net::Reactor& reactor, net::Socket socket) override;

 private:
  void Serve(net::Reactor& reactor, net::Socket socket, bool urgent);

  std::vector<HttpWorker*> workers_;
  std::shared_ptr<net::TlsContext> tls_;
};

/// Collects weir_http_* of the workers.
void CollectHttp(std::span<const HttpWorker* const> workers, telemetry::TextWriter& out);

}  // namespace weir::service
