#include "support/check_load.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "support/http_client.h"
#include "support/wait.h"

namespace weir::test {

std::int64_t WallNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

CheckLoad::CheckLoad(std::vector<std::uint16_t> ports, std::size_t clients, std::string body,
                     std::chrono::microseconds pause)
    : ports_(std::move(ports)),
      body_(std::move(body)),
      pause_(pause),
      records_(clients),
      answers_(clients) {
  for (std::size_t i = 0; i < clients; ++i) threads_.emplace_back([this, i] { Run(i); });
}

CheckLoad::~CheckLoad() { static_cast<void>(Stop()); }

void CheckLoad::Run(std::size_t client) {
  HttpClient http(ports_[client % ports_.size()]);
  while (!stopping_) {
    LoadRecord record;
    record.check.sent = WallNanos();
    try {
      const HttpResponse response = http.Post("/v1/check", body_);
      record.status = response.status;
      record.check.allowed = response.body.find("\"allowed\":true") != std::string::npos;
      record.degraded = response.HasHeader("X-RateLimit-Degraded");
    } catch (const std::exception&) {
      http.Disconnect();
    }
    record.check.answered = WallNanos();
    records_[client].push_back(record);
    if (record.status == 200) ++answers_[client];
    if (pause_.count() != 0) std::this_thread::sleep_for(pause_);
  }
}

bool CheckLoad::AwaitAnswers(std::size_t each) const {
  std::vector<std::size_t> goals(answers_.begin(), answers_.end());
  for (std::size_t& goal : goals) goal += each;
  return WaitUntil([&] {
    return std::equal(answers_.begin(), answers_.end(), goals.begin(), std::greater_equal<>());
  });
}

std::vector<LoadRecord> CheckLoad::Stop() {
  stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  std::vector<LoadRecord> all;
  for (const auto& some : std::exchange(records_, {})) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace weir::test
