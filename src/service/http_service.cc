#include "service/http_service.h"

#include <array>
#include <utility>

#include "net/tls_transport.h"
#include "service/http_connection.h"
#include "service/http_exchange.h"

namespace weir::service {
namespace {

constexpr std::uint32_t kLogLinesPerSecond = 20;
constexpr std::size_t kSpareExchanges = 64;
constexpr std::size_t kMostUrgent = 16;
constexpr std::size_t kSpareOutputs = 8;
constexpr std::size_t kMostKept = std::size_t{256} << 10U;

}  // namespace

HttpWorker::HttpWorker(net::Reactor& reactor, const HttpOptions& options,
                       const http::Router& router, limiter::Limiter& limiter)
    : reactor_(reactor),
      options_(options),
      router_(router),
      limiter_(limiter),
      throttle_(kLogLinesPerSecond),
      answers_(options.answer_budget) {
  spare_output_.reserve(kSpareOutputs);
}

HttpWorker::~HttpWorker() = default;

std::unique_ptr<HttpExchanges> HttpWorker::TakeExchanges() {
  if (spare_.empty()) return std::make_unique<HttpExchanges>(*this);
  std::unique_ptr<HttpExchanges> exchanges = std::move(spare_.back());
  spare_.pop_back();
  return exchanges;
}

void HttpWorker::GiveBack(std::unique_ptr<HttpExchanges> exchanges) {
  if (spare_.size() >= kSpareExchanges) return;
  exchanges->Clear();
  spare_.push_back(std::move(exchanges));
}

void HttpWorker::Lend(std::string& output) noexcept {
  if (!output.empty() || spare_output_.empty()) return;
  output = std::move(spare_output_.back());
  spare_output_.pop_back();
}

void HttpWorker::TakeBack(std::string& output) noexcept {
  output.clear();
  if (output.capacity() <= kMostKept && spare_output_.size() < kSpareOutputs) {
    spare_output_.push_back(std::move(output));
  }
  output = std::string();
}

void HttpWorker::AddUrgent(net::Connection& connection) {
  if (urgent_.size() >= kMostUrgent) {
    net::Connection& oldest = *urgent_.front();
    urgent_.erase(urgent_.begin());
    oldest.Abort();
  }
  urgent_.push_back(&connection);
}

void HttpWorker::RemoveUrgent(const net::Connection& connection) noexcept {
  std::erase(urgent_, &connection);
}

void HttpDoor::Accept(net::Reactor& reactor, net::Socket socket) {
  Serve(reactor, std::move(socket), /*urgent=*/false);
}

void HttpDoor::AcceptUrgent(net::Reactor& reactor, net::Socket socket) {
  Serve(reactor, std::move(socket), /*urgent=*/true);
}

void HttpDoor::Serve(net::Reactor& reactor, net::Socket socket, bool urgent) {
  boost::system::error_code error;
  const auto peer = socket.remote_endpoint(error);
  if (error) return;  // closed already
  HttpWorker& worker = *workers_[reactor.index()];
  worker.BindToThisThread();
  auto transport = net::Carry(std::move(socket), reactor, tls_.get());
  if (transport == nullptr) return;
  const boost::intrusive_ptr<HttpConnection> connection(
      new HttpConnection(worker, std::move(transport), peer.address().to_string(), urgent));
  connection->Start();
}

void CollectHttp(std::span<const HttpWorker* const> workers, telemetry::TextWriter& out) {
  out.Counter("weir_http_responses_total", "HTTP responses by status class.");
  constexpr std::array<std::string_view, 6> kClasses = {"", "1xx", "2xx", "3xx", "4xx", "5xx"};
  for (std::size_t i = 2; i < kClasses.size(); ++i) {
    std::uint64_t sum = 0;
    for (const HttpWorker* worker : workers) sum += worker->metrics().responses[i].value();
    const std::array<telemetry::Label, 1> code = {{{"code", kClasses[i]}}};
    out.Sample(sum, code);
  }
  out.Counter("weir_http_timeouts_total", "Requests that took too long to arrive.");
  std::uint64_t timeouts = 0;
  for (const HttpWorker* worker : workers) timeouts += worker->metrics().timeouts.value();
  out.Sample(timeouts);
}

}  // namespace weir::service
