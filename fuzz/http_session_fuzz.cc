// The whole HTTP path without a socket: parser, router, percent-decoding, check bodies and replies.
// The first byte chooses where the rest is split in two.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "service/http_exchange.h"
#include "service/http_session.h"
#include "telemetry/log.h"

namespace weir::service {
namespace {

class AllowAll final : public limiter::Limiter {
 public:
  void Decide(std::span<limiter::Check> checks, store::Done done) override {
    for (limiter::Check& check : checks) {
      check.status = {};
      check.decision = {};
      check.policy = "p";
      // Every byte of the request must be readable.
      std::size_t sum = check.request.key.size();
      for (const policy::Descriptor& descriptor : check.request.descriptors) {
        for (const policy::Entry& entry : descriptor) {
          for (const char c : entry.value) sum += static_cast<unsigned char>(c);
          for (const char c : entry.key) sum += static_cast<unsigned char>(c);
        }
      }
      check.decision.limit = static_cast<std::int64_t>(sum);
    }
    done();
  }
  void Apply(std::span<store::Application>, store::Done done) override { done(); }
};

class Wire final : public net::Connection, public HttpSession::Transport {
 public:
  explicit Wire(HttpWorker& worker)
      : Connection(worker.reactor()), session(worker, *this, "127.0.0.1", false) {}
  void Drain() override {}
  void Abort() override {}
  void OnDeadline() override {}
  void Resume() override { session.Advance(); }
  boost::intrusive_ptr<net::Connection> Self() override { return this; }

  void Send(std::string_view bytes) {
    while (!bytes.empty() && !session.finished()) {
      const std::span<char> space = session.Space();
      const std::size_t n = std::min(space.size(), bytes.size());
      std::copy_n(bytes.begin(), n, space.begin());
      session.Received(n);
      bytes.remove_prefix(n);
      net::Stream::Next next;
      do {
        session.Sent(session.Output().size());
        next = session.Advance();
      } while (next == net::Stream::Next::kAgain || !session.Output().empty());
    }
  }

  HttpSession session;
};

http::Router MakeRouter() {
  http::Router router;
  service::HttpExchanges::AddRoutes(router);
  router.Add("GET", "/a/{b}/c", [](const http::Request& request, http::Reply reply) {
    http::Response response;
    response.body = request.params.at(0);
    reply(std::move(response));
  });
  return router;
}

}  // namespace
}  // namespace weir::service

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::service;
  static weir::net::Reactor reactor(0, 1000);
  static const HttpOptions options = [] {
    weir::telemetry::ConfigureLog({.level = weir::telemetry::Level::kOff});
    return HttpOptions{};
  }();
  static const weir::http::Router router = MakeRouter();
  static AllowAll limiter;
  static HttpWorker worker(reactor, options, router, limiter);
  worker.BindToThisThread();
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t cut = bytes.size() * data[0] / 256;
  const boost::intrusive_ptr<Wire> wire(new Wire(worker));
  wire->Send(bytes.substr(0, cut));
  wire->Send(bytes.substr(cut));
  wire->session.EndOfInput();
  wire->session.Advance();
  return 0;
}
