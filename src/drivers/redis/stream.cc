#include "drivers/redis/stream.h"

// The Link lives as long as an operation of Asio refers to its buffers; the Stream may be destroyed
// earlier. `closed_` keeps late completions from calling back.

#include <openssl/ssl.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <utility>

namespace weir::redis {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Socket = asio::basic_stream_socket<tcp, asio::io_context::executor_type>;
using Resolver = asio::ip::basic_resolver<tcp, asio::io_context::executor_type>;
using TlsStream = asio::ssl::stream<Socket&>;

constexpr std::size_t kReadBytes = std::size_t{64} * 1024;
constexpr std::size_t kKeepBytes = std::size_t{256} * 1024;

}  // namespace

Result<TlsContext> MakeTlsContext(const TlsOptions& options) {
  if (!options.on) return TlsContext();
  const auto wrong = [](const std::string& what, const error_code& error) {
    return Error{Code::kInvalidArgument, "redis: TLS " + what + ": " + error.message()};
  };
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  error_code error;
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  if (options.ca_file.empty()) {
    context->set_default_verify_paths(error);
  } else {
    context->load_verify_file(options.ca_file, error);
  }
  if (error) return wrong("authorities " + options.ca_file, error);
  if (!options.certificate_file.empty()) {
    context->use_certificate_chain_file(options.certificate_file, error);
    if (error) return wrong("certificate " + options.certificate_file, error);
    const std::string& key = options.key_file.empty() ? options.certificate_file : options.key_file;
    context->use_private_key_file(key, asio::ssl::context::pem, error);
    if (error) return wrong("key " + key, error);
  }
  context->set_verify_mode(options.verify ? asio::ssl::verify_peer : asio::ssl::verify_none);
  return context;
}

class Stream::Link : public std::enable_shared_from_this<Link> {
 public:
  Link(asio::io_context& io, Endpoint endpoint, TlsContext tls, Callbacks callbacks)
      : io_(io),
        endpoint_(std::move(endpoint)),
        tls_(std::move(tls)),
        callbacks_(std::move(callbacks)),
        resolver_(io),
        socket_(io) {}

  void Open();
  void Write(const Command& command);
  void Close();

 private:
  void Connect(const Resolver::results_type& addresses);
  void Handshake();
  void Opened();
  void Read();
  void Flush();
  void Lose(const error_code& error);
  /// Runs `handler(error, …)` unless the stream was closed meanwhile.
  template <typename Handler>
  auto Guard(Handler handler) {
    return [self = shared_from_this(), handler = std::move(handler)](const error_code& error,
                                                                     auto... rest) {
      if (!self->closed_) handler(error, rest...);
    };
  }

  asio::io_context& io_;
  const Endpoint endpoint_;
  const TlsContext tls_;
  Callbacks callbacks_;
  Resolver resolver_;
  Socket socket_;
  std::optional<TlsStream> secure_;
  bool closed_ = false;
  bool open_ = false;
  bool flushing_ = false;
  std::string waiting_;  // to be sent
  std::string sending_;
  std::array<char, kReadBytes> input_{};
};

void Stream::Link::Open() {
  error_code error;
  const asio::ip::address address = asio::ip::make_address(endpoint_.host, error);
  if (!error) {
    // Not from inside the constructor, which makes no callbacks.
    const tcp::endpoint numeric(address, endpoint_.port);
    return asio::post(io_, [self = shared_from_this(), numeric] {
      if (self->closed_) return;
      self->Connect(Resolver::results_type::create(numeric, "", ""));
    });
  }
  resolver_.async_resolve(endpoint_.host, std::to_string(endpoint_.port),
                          Guard([this](const error_code& failed, const auto& addresses) {
                            failed ? Lose(failed) : Connect(addresses);
                          }));
}

void Stream::Link::Connect(const Resolver::results_type& addresses) {
  asio::async_connect(socket_, addresses, Guard([this](const error_code& error, const auto&) {
                        if (error) return Lose(error);
                        error_code ignored;
                        socket_.set_option(tcp::no_delay(true), ignored);
                        socket_.set_option(asio::socket_base::keep_alive(true), ignored);
                        tls_ ? Handshake() : Opened();
                      }));
}

void Stream::Link::Handshake() {
  secure_.emplace(socket_, *tls_);
  error_code error;
  asio::ip::make_address(endpoint_.host, error);
  if (error) SSL_set_tlsext_host_name(secure_->native_handle(), endpoint_.host.c_str());
  secure_->set_verify_callback(asio::ssl::host_name_verification(endpoint_.host), error);
  secure_->async_handshake(asio::ssl::stream_base::client, Guard([this](const error_code& failed) {
                             failed ? Lose(failed) : Opened();
                           }));
}

void Stream::Link::Opened() {
  open_ = true;
  Read();
  Flush();
  callbacks_.opened();
}

void Stream::Link::Read() {
  auto handler = Guard([this](const error_code& error, std::size_t size) {
    if (error) return Lose(error);
    callbacks_.read({input_.data(), size});
    if (!closed_) Read();
  });
  if (secure_) {
    secure_->async_read_some(asio::buffer(input_), std::move(handler));
  } else {
    socket_.async_read_some(asio::buffer(input_), std::move(handler));
  }
}

void Stream::Link::Write(const Command& command) {
  command.AppendTo(waiting_);
  if (!open_ || flushing_) return;
  flushing_ = true;
  asio::post(io_, [self = shared_from_this()] {
    self->flushing_ = false;
    if (!self->closed_) self->Flush();
  });
}

void Stream::Link::Flush() {
  if (waiting_.empty() || flushing_) return;
  flushing_ = true;
  sending_.clear();
  if (sending_.capacity() > kKeepBytes) sending_.shrink_to_fit();
  sending_.swap(waiting_);
  auto handler = Guard([this](const error_code& error, std::size_t) {
    flushing_ = false;
    error ? Lose(error) : Flush();
  });
  if (secure_) {
    asio::async_write(*secure_, asio::buffer(sending_), std::move(handler));
  } else {
    asio::async_write(socket_, asio::buffer(sending_), std::move(handler));
  }
}

void Stream::Link::Lose(const error_code& error) {
  const std::function<void(std::string)> lost = std::move(callbacks_.lost);
  Close();
  lost(error == asio::error::eof ? "the server closed the connection" : error.message());
}

void Stream::Link::Close() {
  closed_ = true;
  resolver_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

Stream::Stream(asio::io_context& io, const Endpoint& endpoint, TlsContext tls, Callbacks callbacks)
    : link_(std::make_shared<Link>(io, endpoint, std::move(tls), std::move(callbacks))) {
  link_->Open();
}

Stream::~Stream() { Close(); }

void Stream::Write(const Command& command) { link_->Write(command); }
void Stream::Close() { link_->Close(); }

}  // namespace weir::redis
