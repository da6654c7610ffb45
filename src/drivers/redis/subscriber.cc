#include "drivers/redis/subscriber.h"

#include <boost/asio/io_context.hpp>
#include <utility>

#include "drivers/redis/link.h"

namespace weir::redis {

class Subscriber::Session final : public Link {
 public:
  Session(boost::asio::io_context& io, ConnectionOptions options, std::vector<std::string> channels,
          Callbacks callbacks)
      : Link(io, std::move(options)),
        channels_(std::move(channels)),
        callbacks_(std::move(callbacks)) {}

  // Not from inside the constructor, which makes no callbacks.
  void Start() { After(Clock::duration(0), &Session::Connect); }
  void Close() {
    closed_ = true;
    stream_.reset();
    timer_.cancel();
  }
  bool subscribed() const noexcept { return stream_ && replies_left_ == 0; }

 private:
  using Link::Lose;
  void Lose(const std::string& why, Code code) override;
  void Opened() override;
  void TakeReply(Reply reply) override;
  void Connect();
  void TakeMessage(const Reply& reply);
  void AskWhetherAlive();
  void After(Clock::duration delay, void (Session::*next)());

  const std::vector<std::string> channels_;
  const Callbacks callbacks_;
  std::size_t replies_left_ = 0;  // until all channels are subscribed
};

void Subscriber::Session::Connect() {
  replies_left_ = 1;
  if (!tls_.ok()) return Lose(tls_.error().message);
  Open();
  heard_ = true;
  After(options_.connect_timeout, &Session::AskWhetherAlive);
}

void Subscriber::Session::Opened() {
  replies_left_ = Greet() + channels_.size();
  Command subscribe{"SUBSCRIBE"};
  for (const std::string& channel : channels_) subscribe.Add(channel);
  stream_->Write(subscribe);
}

void Subscriber::Session::TakeReply(Reply reply) {
  if (reply.kind == Reply::Kind::kError) return Lose(reply.text);
  if (replies_left_ == 0 || (reply.is_array(3) && reply.elements[0].text == "message")) {
    return TakeMessage(reply);
  }
  if (--replies_left_ > 0) return;
  backoff_.Reset();
  if (callbacks_.subscribed) callbacks_.subscribed();
}

void Subscriber::Session::TakeMessage(const Reply& reply) {
  if (!reply.is_array(3) || reply.elements[0].text != "message") return;  // the reply to a PING
  callbacks_.message(reply.elements[1].text, reply.elements[2].text);
}

// A server that died silently is detected by a timeout.
void Subscriber::Session::AskWhetherAlive() {
  if (!heard_) return Lose("no response in time");
  if (replies_left_ > 0) return Lose("the server did not respond in time");
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

void Subscriber::Session::Lose(const std::string& why, Code code) {
  stream_.reset();
  After(backoff_.Next(), &Session::Connect);
  if (callbacks_.lost) callbacks_.lost({code, name_ + why});
}

Subscriber::Subscriber(boost::asio::io_context& io, ConnectionOptions options,
                       std::vector<std::string> channels, Callbacks callbacks)
    : session_(std::make_shared<Session>(io, std::move(options), std::move(channels),
                                         std::move(callbacks))) {
  session_->Start();
}

Subscriber::~Subscriber() { session_->Close(); }

bool Subscriber::subscribed() const noexcept { return session_->subscribed(); }

}  // namespace weir::redis
