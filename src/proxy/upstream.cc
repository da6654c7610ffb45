#include "proxy/upstream.h"

#include <netdb.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/blocking.h"
#include "base/url.h"
#include "net/edge_socket.h"
#include "net/tls_transport.h"

namespace weir::proxy {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t kBufferSize = std::size_t{16} * 1024;
constexpr std::chrono::seconds kSweep{1};

Error BadUpstream(std::string_view url, std::string_view why) {
  return {Code::kInvalidArgument, "upstream \"" + WithoutSecrets(url) + "\": " + std::string(why) +
                                      "; write it as http://127.0.0.1:9000"};
}

}  // namespace

Result<Upstream> ResolveUpstream(std::string_view url) {
  Result<Url> parts = ParseUrl(url);
  if (!parts.ok()) return BadUpstream(url, parts.error().message);
  Upstream upstream;
  upstream.tls = parts->scheme == "https";
  if (!upstream.tls && parts->scheme != "http") {
    return BadUpstream(url, "must begin with http:// or https://");
  }
  if (!parts->path.empty()) return BadUpstream(url, "a path is not supported");
  if (!parts->is_origin()) return BadUpstream(url, "expected one host and a port");
  std::string host = std::move(parts->hosts[0].name);
  const std::uint16_t given = parts->hosts[0].port;
  const std::uint16_t number = given != 0 ? given : upstream.tls ? 443 : 80;
  const std::string port = std::to_string(number);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  MayBlock("resolving a host name");
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return BadUpstream(url, gai_strerror(error));
  }
  upstream.endpoint.resize(found->ai_addrlen);
  std::memcpy(upstream.endpoint.data(), found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  upstream.health =
      std::make_shared<UpstreamHealth>(parts->scheme + "://" + JoinHostPort(host, number));
  upstream.host = std::move(host);
  return upstream;
}

UpstreamConnection::UpstreamConnection(net::Reactor& reactor, std::size_t target)
    : reactor_(reactor), socket_(reactor.context()), buffer_(kBufferSize), target_(target) {}

void UpstreamConnection::Attach(UpstreamUser& user,
                                boost::intrusive_ptr<net::Connection> keeper) noexcept {
  user_ = &user;
  keeper_ = std::move(keeper);
}

void UpstreamConnection::Detach() noexcept {
  user_ = nullptr;
  keeper_.reset();
}

void UpstreamConnection::Connect(const Upstream& upstream, const net::TlsClientContext* tls) {
  error_code error;
  socket_.open(upstream.endpoint.protocol(), error);
  if (!error) socket_.set_option(asio::ip::tcp::no_delay(true), error);
  if (error) {
    // Reported later like any other outcome: the caller is in the middle of its own work.
    asio::post(reactor_.context(), [self = Ptr(this), error] {
      self->Connected(Error{Code::kUnavailable, error.message()});
    });
    return;
  }
  const auto then = [self = Ptr(this), &upstream, tls](const error_code& failure) {
    if (failure) return self->Connected(Error{Code::kUnavailable, failure.message()});
    if (self->user_ == nullptr) return;  // no user is left
    self->transport_ = std::make_unique<net::EdgeSocket>(std::move(self->socket_), self->reactor_);
    const Status begun = upstream.tls ? self->BeginTls(upstream.host, tls) : Status();
    self->transport_->Attach(*self, *self);
    if (!begun.ok() || self->transport_->ready()) return self->Connected(begun);
    self->shaking_hands_ = true;
    self->Read();
  };
  socket_.async_connect(upstream.endpoint, then);
}

Status UpstreamConnection::BeginTls(const std::string& host, const net::TlsClientContext* tls) {
  auto session = tls->NewSession(host);
  if (!session.ok()) return session.error();
  transport_ = std::make_unique<net::TlsTransport>(std::move(transport_), std::move(*session));
  return {};
}

void UpstreamConnection::Connected(const Status& status) {
  const auto keeper = keeper_;  // the user may detach, and must outlive its own call
  shaking_hands_ = false;
  if (user_ != nullptr) user_->OnUpstreamConnected(status);
}

void UpstreamConnection::Read() {
  reading_ = true;
  transport_->more() ? transport_->AwaitTurn() : transport_->AwaitReadable();
}

void UpstreamConnection::OnReadable() {
  if (!std::exchange(reading_, false)) return;
  const auto keeper = keeper_;
  char* const space = buffer_.space();
  const net::Transport::Received received = transport_->Receive({space, buffer_.space_size()});
  if (received.outcome == net::Transport::Outcome::kNothing) {
    return shaking_hands_ && transport_->ready() ? Connected({}) : Read();
  }
  buffer_.Commit(received.size);
  if (shaking_hands_) return Connected(Error{Code::kUnavailable, transport_->failure()});
  if (user_ == nullptr) return Close();
  user_->OnUpstreamRead(received.outcome);
}

bool UpstreamConnection::Usable() {
  if (open() && reading_) OnReadable();
  return open() && reading_;
}

void UpstreamConnection::OnWritable() {
  const auto keeper = keeper_;
  if (user_ != nullptr && !shaking_hands_) user_->OnUpstreamWritable();
}

void UpstreamConnection::Close() noexcept {
  error_code ignored;
  socket_.close(ignored);
  if (transport_ != nullptr) transport_->Close();
}

UpstreamPool::UpstreamPool(net::Reactor& reactor, std::vector<Upstream> targets, PoolLimits limits)
    : reactor_(reactor), limits_(limits) {
  targets_.reserve(targets.size());
  for (Upstream& upstream : targets) targets_.push_back({std::move(upstream), {}, 0});
  reactor_.timers().Set(*this, kSweep);
}

void UpstreamPool::Clear() noexcept {
  reactor_.timers().Cancel(*this);
  for (Target& target : targets_) {
    for (const UpstreamPtr& connection : target.idle) connection->Close();
    target.idle.clear();
  }
}

std::size_t UpstreamPool::NextTarget() noexcept {
  for (std::size_t tried = 0; tried < targets_.size(); ++tried) {
    const std::size_t candidate = next_;
    next_ = next_ + 1 == targets_.size() ? 0 : next_ + 1;
    if (targets_[candidate].down_until <= sweeps_) return candidate;
  }
  // All are down: asking one is better than asking none.
  const std::size_t candidate = next_;
  next_ = next_ + 1 == targets_.size() ? 0 : next_ + 1;
  return candidate;
}

UpstreamPtr UpstreamPool::Take(bool fresh) {
  const std::size_t chosen = NextTarget();
  std::vector<UpstreamPtr>& idle = targets_[chosen].idle;
  while (!fresh && !idle.empty()) {
    UpstreamPtr connection = std::move(idle.back());
    idle.pop_back();
    if (connection->Usable()) return connection;
  }
  return UpstreamPtr(new UpstreamConnection(reactor_, chosen));
}

void UpstreamPool::Return(UpstreamPtr connection) {
  std::vector<UpstreamPtr>& idle = targets_[connection->target()].idle;
  if (idle.size() >= limits_.idle_connections) {
    connection->Close();
    return;
  }
  connection->buffer().Resize(kBufferSize);
  connection->reused = true;
  connection->idle_since = sweeps_;
  connection->Read();
  idle.push_back(std::move(connection));
}

void UpstreamPool::MarkDown(std::size_t target) noexcept {
  targets_[target].down_until =
      sweeps_ + static_cast<std::size_t>(limits_.retry_failed_upstream / kSweep);
}

void UpstreamPool::OnDeadline() {
  ++sweeps_;
  const auto patience = static_cast<std::size_t>(limits_.idle_timeout / kSweep);
  for (Target& target : targets_) {
    // The longest idle ones are at the front: connections are taken from the back.
    const auto expired = [&](const UpstreamPtr& connection) {
      const bool over = sweeps_ - connection->idle_since > patience;
      if (over) connection->Close();
      return over || !connection->open();
    };
    target.idle.erase(std::remove_if(target.idle.begin(), target.idle.end(), expired),
                      target.idle.end());
  }
  reactor_.timers().Set(*this, kSweep);
}

}  // namespace weir::proxy
