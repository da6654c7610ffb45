#include "proxy/upstream.h"

#include <netdb.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <charconv>
#include <utility>

#include "base/blocking.h"

namespace weir::proxy {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t kBufferSize = std::size_t{16} * 1024;
constexpr std::chrono::seconds kSweep{1};

Error BadUpstream(std::string_view url, std::string_view why) {
  return {Code::kInvalidArgument, "upstream \"" + std::string(url) + "\": " + std::string(why) +
                                      "; write it as http://127.0.0.1:9000"};
}

}  // namespace

Result<net::Endpoint> ResolveUpstream(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with("https://")) {
    return BadUpstream(url, "TLS to upstreams is not supported; terminate TLS in front of it");
  }
  if (!url.starts_with(kScheme)) return BadUpstream(url, "does not begin with http://");
  std::string_view authority = url.substr(kScheme.size());
  if (authority.ends_with('/')) authority.remove_suffix(1);
  if (authority.find('/') != std::string_view::npos) {
    return BadUpstream(url, "a path is not supported");
  }
  const auto bracket = authority.rfind(']');
  const auto colon = authority.rfind(':');
  const bool has_port = colon != authority.npos && (bracket == authority.npos || colon > bracket);
  std::string host(authority.substr(0, has_port ? colon : authority.npos));
  const std::string port(has_port ? authority.substr(colon + 1) : "80");
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  unsigned number = 0;
  const auto [rest, failure] = std::from_chars(port.data(), port.data() + port.size(), number);
  const bool right = failure == std::errc() && rest == port.data() + port.size();
  if (host.empty() || !right || number == 0 || number > 65535) {
    return BadUpstream(url, "bad host or port");
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  MayBlock("resolving a host name");
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return BadUpstream(url, gai_strerror(error));
  }
  net::Endpoint endpoint;
  endpoint.resize(found->ai_addrlen);
  std::memcpy(endpoint.data(), found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return endpoint;
}

UpstreamConnection::UpstreamConnection(net::Reactor& reactor, std::size_t target)
    : socket_(reactor.context()), buffer_(kBufferSize), target_(target) {}

void UpstreamConnection::Attach(UpstreamUser& user,
                                boost::intrusive_ptr<net::Connection> keeper) noexcept {
  user_ = &user;
  keeper_ = std::move(keeper);
}

void UpstreamConnection::Detach() noexcept {
  user_ = nullptr;
  keeper_.reset();
}

void UpstreamConnection::Connect(const net::Endpoint& endpoint) {
  error_code error;
  socket_.open(endpoint.protocol(), error);
  if (!error) socket_.set_option(asio::ip::tcp::no_delay(true), error);
  if (error) {
    // Answered later like any other outcome: the caller is in the midst of its own work.
    asio::post(socket_.get_executor(), [self = Ptr(this), error] {
      const auto keeper = self->keeper_;
      if (self->user_ != nullptr) self->user_->OnUpstreamConnected(error);
    });
    return;
  }
  socket_.async_connect(endpoint, [self = Ptr(this)](const error_code& failure) {
    const auto keeper = self->keeper_;
    if (self->user_ != nullptr) self->user_->OnUpstreamConnected(failure);
  });
}

void UpstreamConnection::Read() {
  if (reading_) return;
  reading_ = true;
  char* const space = buffer_.space();
  socket_.async_read_some(asio::buffer(space, buffer_.space_size()),
                          [self = Ptr(this)](const error_code& error, std::size_t count) {
                            self->reading_ = false;
                            self->buffer_.Commit(count);
                            // The user may detach, and must outlive its own call.
                            const auto keeper = self->keeper_;
                            if (self->user_ != nullptr) {
                              self->user_->OnUpstreamRead(error);
                            } else {
                              self->Close();
                            }
                          });
}

void UpstreamConnection::WaitWritable() {
  socket_.async_wait(net::Socket::wait_write, [self = Ptr(this)](const error_code& error) {
    const auto keeper = self->keeper_;
    if (self->user_ != nullptr && error != asio::error::operation_aborted) {
      self->user_->OnUpstreamWritable();
    }
  });
}

void UpstreamConnection::Close() noexcept {
  error_code ignored;
  socket_.close(ignored);
}

UpstreamPool::UpstreamPool(net::Reactor& reactor, std::vector<net::Endpoint> targets,
                           PoolLimits limits)
    : reactor_(reactor), limits_(limits) {
  targets_.reserve(targets.size());
  for (net::Endpoint& endpoint : targets) targets_.push_back({std::move(endpoint), {}, 0});
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
    // Closed meanwhile by the upstream, which its resting read has noticed.
    if (connection->open() && connection->reading()) return connection;
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
    // The longest resting ones stand in front: connections are taken from the back.
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
