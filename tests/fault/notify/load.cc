#include "load.h"

#include <array>
#include <chrono>
#include <set>
#include <stdexcept>

#include "support/http_client.h"
#include "support/wait.h"

namespace weir::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string User(int user) { return "user-" + std::to_string(user); }

/// The text of the field "message" of an event; the load's messages have no quotes.
std::string MessageOf(const std::string& event) {
  constexpr std::string_view kMark = "\"message\":\"";
  const std::size_t start = event.find(kMark) + kMark.size();
  return event.substr(start, event.find('"', start) - start);
}

}  // namespace

int NotifyLoad::LimitOf(int user) {
  constexpr std::array<int, 3> kLimits = {40, 150, 1'000'000};
  return kLimits.at(static_cast<std::size_t>(user % 3));
}

void NotifyLoad::Configure(std::uint16_t port) {
  HttpClient client(port);
  for (int user = 0; user < kUsers; ++user) {
    const HttpResponse made =
        client.Post("/api/config", R"({"userId":")" + User(user) + R"(","rateLimit":)" +
                                       std::to_string(LimitOf(user)) + R"(,"timeWindow":60})");
    if (made.status != 200) throw std::runtime_error("cannot configure: " + made.body);
  }
}

NotifyLoad::NotifyLoad(std::uint16_t port) : port_(port) {
  for (int client = 0; client < kClients; ++client) {
    threads_.emplace_back([this, client] { Run(client); });
  }
}

NotifyLoad::~NotifyLoad() { Stop(); }

void NotifyLoad::Stop() {
  stopping_ = true;
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void NotifyLoad::Run(int client) {
  HttpClient http(port_, "127.0.0.1", seconds(20));
  for (int number = 0; !stopping_; ++number) {
    Answer answer{.user = (number * 7 + client) % kUsers,
                  .message = "m-" + std::to_string(client) + "-" + std::to_string(number)};
    try {
      answer.status = http.Post("/api/send", R"({"userId":")" + User(answer.user) +
                                                 R"(","message":")" + answer.message + "\"}")
                          .status;
    } catch (const std::exception&) {
      http.Disconnect();
    }
    // The gateway is down, or this user's places are used up: no need to send at full speed.
    if (answer.status != 200) std::this_thread::sleep_for(milliseconds(20));
    const std::lock_guard lock(mutex_);
    ++counts_[answer.status];
    answers_.push_back(std::move(answer));
  }
}

int NotifyLoad::count(int status) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(status);
  return found == counts_.end() ? 0 : found->second;
}

bool NotifyLoad::WaitForMore(int status, int more) const {
  const int goal = count(status) + more;
  return WaitUntil([&] { return count(status) >= goal; });
}

std::vector<std::string> NotifyLoad::Complaints(const std::vector<KafkaMessage>& topic) const {
  std::multiset<std::string> in_topic;
  std::map<std::string, int> events;
  for (const KafkaMessage& message : topic) {
    in_topic.insert(MessageOf(message.payload));
    ++events[message.key];
  }
  std::vector<std::string> wrong;
  std::array<int, kUsers> sent{};
  std::array<int, kUsers> unknown{};
  for (const Answer& answer : answers_) {
    const auto user = static_cast<std::size_t>(answer.user);
    switch (answer.status) {
      case 200:
        ++sent.at(user);
        if (in_topic.count(answer.message) != 1) {
          wrong.push_back(answer.message + " was answered 200 and is " +
                          std::to_string(in_topic.count(answer.message)) + " times in the topic");
        }
        break;
      case 0:
      case 503:
        ++unknown.at(user);
        break;
      case 429:
        break;
      default:
        wrong.push_back(answer.message + " was answered " + std::to_string(answer.status));
    }
  }
  for (int user = 0; user < kUsers; ++user) {
    const int limit = LimitOf(user);
    const auto index = static_cast<std::size_t>(user);
    if (sent.at(index) > limit) {
      wrong.push_back(User(user) + " was sent " + std::to_string(sent.at(index)));
    }
    if (events[User(user)] > limit + unknown.at(index)) {
      wrong.push_back(User(user) + " has " + std::to_string(events[User(user)]) + " events");
    }
  }
  return wrong;
}

}  // namespace weir::test
