#include "drivers/redis/channel.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "drivers/redis/connection.h"
#include "drivers/redis/subscriber.h"

namespace weir::redis {
namespace {

class RedisChannel final : public Channel {
 public:
  RedisChannel(Address address, std::string name, Callbacks callbacks)
      : address_(std::move(address)),
        name_(std::move(name)),
        callbacks_(std::move(callbacks)),
        work_(boost::asio::make_work_guard(io_)) {
    Open();
    thread_ = std::thread([this] { io_.run(); });
  }

  ~RedisChannel() override {
    boost::asio::post(io_, [this] {
      subscriber_.reset();
      publisher_.reset();
      work_.reset();
      io_.stop();
    });
    thread_.join();
  }

  void Publish(std::string message) override {
    boost::asio::post(io_, [this, message = std::move(message)] {
      if (publisher_ == nullptr) return;
      publisher_->Send(Command{"PUBLISH", name_, message}, [](const Answer&) {});
    });
  }

 private:
  /// Connects to the next of the endpoints.
  void Open() {
    ConnectionOptions options =
        ConnectionOptions::Of(address_, endpoint_++ % address_.endpoints.size());
    options.connect_timeout = std::chrono::milliseconds(1000);
    options.command_timeout = std::chrono::milliseconds(1000);
    publisher_ = std::make_unique<Connection>(io_, options);
    Subscriber::Callbacks callbacks;
    callbacks.message = [this](std::string_view, std::string_view message) {
      callbacks_.message(message);
    };
    callbacks.subscribed = [this] { callbacks_.changed(true); };
    callbacks.lost = [this](const Error&) {
      callbacks_.changed(false);
      if (address_.endpoints.size() == 1 || std::exchange(moving_, true)) return;
      // Not from inside its own callback.
      boost::asio::post(io_, [this] {
        moving_ = false;
        if (subscriber_ == nullptr) return;
        Open();
      });
    };
    subscriber_ = std::make_unique<Subscriber>(io_, std::move(options), std::vector{name_},
                                               std::move(callbacks));
  }

  const Address address_;
  const std::string name_;
  const Callbacks callbacks_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::unique_ptr<Connection> publisher_;
  std::unique_ptr<Subscriber> subscriber_;
  std::size_t endpoint_ = 0;
  bool moving_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Channel> OpenChannel(Address address, std::string name,
                                     Channel::Callbacks callbacks) {
  return std::make_unique<RedisChannel>(std::move(address), std::move(name), std::move(callbacks));
}

}  // namespace weir::redis
