#include "drivers/redis/subscriber.h"

#include <boost/asio/io_context.hpp>
#include <utility>

#include "drivers/io_thread.h"
#include "drivers/redis/backoff.h"
#include "drivers/redis/greeting.h"
#include "drivers/redis/stream.h"

namespace weir::redis {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using Timer = IoThread::Timer;

}  // namespace

class Subscriber::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(asio::io_context& io, ConnectionOptions options, std::vector<std::string> channels,
          Callbacks callbacks)
      : io_(io),
        options_(std::move(options)),
        channels_(std::move(channels)),
        callbacks_(std::move(callbacks)),
        timer_(io),
        tls_(MakeTlsContext(options_.tls)),
        backoff_(options_.reconnect_delay, options_.max_reconnect_delay) {}

  // Not from inside the constructor, which calls nobody back.
  void Start() { After(Clock::duration(0), &Session::Connect); }
  void Close() {
    closed_ = true;
    stream_.reset();
    timer_.cancel();
  }
  bool subscribed() const noexcept { return stream_ && replies_left_ == 0; }

 private:
  void Connect();
  void Opened();
  void OnBytes(std::string_view bytes);
  void TakeReply(const Reply& reply);
  void TakeMessage(const Reply& reply);
  void AskWhetherAlive();
  void After(Clock::duration delay, void (Session::*next)());
  void Lose(const std::string& why);
  template <typename Handler>
  auto Weak(Handler handler) {
    return [weak = weak_from_this(), handler = std::move(handler)](auto&&... arguments) {
      const std::shared_ptr<Session> self = weak.lock();
      if (self && !self->closed_) handler(std::forward<decltype(arguments)>(arguments)...);
    };
  }

  asio::io_context& io_;
  const ConnectionOptions options_;
  const std::vector<std::string> channels_;
  const Callbacks callbacks_;
  Timer timer_;
  const Result<TlsContext> tls_;
  bool closed_ = false;
  bool heard_ = false;  // anything since the last question
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<ReplyReader> reader_;
  std::size_t replies_left_ = 0;  // until all channels are subscribed
  Backoff backoff_;
};

void Subscriber::Session::Connect() {
  replies_left_ = 1;
  if (!tls_.ok()) return Lose(tls_.error().message);
  reader_ = std::make_unique<ReplyReader>();
  stream_ = std::make_unique<Stream>(
      io_, options_.endpoint, *tls_,
      Stream::Callbacks{.opened = Weak([this] { Opened(); }),
                        .read = Weak([this](std::string_view bytes) { OnBytes(bytes); }),
                        .lost = Weak([this](const std::string& why) { Lose(why); })});
  heard_ = true;
  After(options_.connect_timeout, &Session::AskWhetherAlive);
}

void Subscriber::Session::Opened() {
  const std::vector<Command> greeting = Greeting(options_);
  for (const Command& command : greeting) stream_->Write(command);
  Command subscribe{"SUBSCRIBE"};
  for (const std::string& channel : channels_) subscribe.Add(channel);
  stream_->Write(subscribe);
  replies_left_ = greeting.size() + channels_.size();
}

void Subscriber::Session::OnBytes(std::string_view bytes) {
  heard_ = true;
  if (Status fed = reader_->Feed(bytes); !fed.ok()) return Lose(fed.error().message);
  const Stream* const stream = stream_.get();
  Reply reply;
  while (true) {
    const Result<bool> complete = reader_->Next(reply);
    if (!complete.ok()) return Lose(complete.error().message);
    if (!*complete) return;
    TakeReply(reply);
    if (closed_ || stream_.get() != stream) return;
  }
}

void Subscriber::Session::TakeReply(const Reply& reply) {
  if (reply.kind == Reply::Kind::kError) return Lose(reply.text);
  if (replies_left_ == 0 || (reply.is_array(3) && reply.elements[0].text == "message")) {
    return TakeMessage(reply);
  }
  if (--replies_left_ > 0) return;
  backoff_.Reset();
  if (callbacks_.subscribed) callbacks_.subscribed();
}

void Subscriber::Session::TakeMessage(const Reply& reply) {
  if (!reply.is_array(3) || reply.elements[0].text != "message") return;  // the answer to a PING
  callbacks_.message(reply.elements[1].text, reply.elements[2].text);
}

// A server that went away without a word is found out by not answering.
void Subscriber::Session::AskWhetherAlive() {
  if (!heard_) return Lose("no answer in time");
  if (replies_left_ > 0) return Lose("the server did not answer in time");
  heard_ = false;
  stream_->Write({"PING"});
  After(options_.command_timeout, &Session::AskWhetherAlive);
}

void Subscriber::Session::After(Clock::duration delay, void (Session::*next)()) {
  timer_.expires_after(delay);
  timer_.async_wait(Weak([this, next](const boost::system::error_code& error) {
    if (!error) (this->*next)();
  }));
}

void Subscriber::Session::Lose(const std::string& why) {
  stream_.reset();
  After(backoff_.Next(), &Session::Connect);
  if (callbacks_.lost) {
    callbacks_.lost({Code::kUnavailable, "redis " + options_.endpoint.host + ":" +
                                             std::to_string(options_.endpoint.port) + ": " + why});
  }
}

Subscriber::Subscriber(asio::io_context& io, ConnectionOptions options,
                       std::vector<std::string> channels, Callbacks callbacks)
    : session_(std::make_shared<Session>(io, std::move(options), std::move(channels),
                                         std::move(callbacks))) {
  session_->Start();
}

Subscriber::~Subscriber() { session_->Close(); }

bool Subscriber::subscribed() const noexcept { return session_->subscribed(); }

}  // namespace weir::redis
