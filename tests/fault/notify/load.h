#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/kafka_server.h"

namespace weir::test {

/// Clients that send to many users concurrently and record every answer. A broken connection is
/// reopened; a request without an answer counts as unknown.
///
/// Thread-safe.
class NotifyLoad {
 public:
  static constexpr int kUsers = 20;
  static constexpr int kClients = 10;

  /// Sends that a user may make per hour: few for a third of the users, some for another third, and
  /// more than a test can send for the rest, so that caps are reached early, late and never.
  static int LimitOf(int user);
  static void Configure(std::uint16_t port);

  explicit NotifyLoad(std::uint16_t port);
  ~NotifyLoad();
  NotifyLoad(const NotifyLoad&) = delete;
  NotifyLoad& operator=(const NotifyLoad&) = delete;

  /// The number of answers with this status so far.
  int count(int status) const;
  /// Waits for `more` further answers with this status; false after some seconds.
  bool WaitForMore(int status, int more) const;
  void Stop();

  /// After Stop: the inconsistencies between all answers and the content of the topic.
  /// Every 200 is there; no user has more of them than the limit; all other answers are 429 or 503;
  /// what the topic has beyond the limit are sends whose outcome no client knows for certain.
  std::vector<std::string> Complaints(const std::vector<KafkaMessage>& topic) const;

 private:
  struct Answer {
    int user = 0;
    std::string message;
    int status = 0;  ///< 0: no answer
  };
  void Run(int client);

  const std::uint16_t port_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::vector<Answer> answers_;
  std::map<int, int> counts_;
  std::vector<std::thread> threads_;
};

}  // namespace weir::test
