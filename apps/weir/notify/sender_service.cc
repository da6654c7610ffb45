#include "notify/sender_service.h"

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "drivers/kafka/topics.h"
#include "drivers/kafka/url.h"
#include "notify/webhook_provider.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

using telemetry::Level;
using telemetry::Log;

constexpr std::chrono::milliseconds kWait{250};
constexpr std::chrono::milliseconds kCommitPause{500};
constexpr std::chrono::seconds kBeatPause{2};
constexpr std::size_t kConsoleBatch = 500;
// A worker that meets a dead webhook needs attempts × (timeout + pause) for each message of its
// share; so few must fit between two polls of the group.
constexpr std::size_t kMessagesPerWorker = 4;
constexpr int kPartitions = 3;

Result<std::unique_ptr<notify::Provider>> MakeProvider(const SenderSettings& settings) {
  if (settings.webhook.empty()) {
    return std::unique_ptr<notify::Provider>(std::make_unique<notify::ConsoleProvider>());
  }
  auto webhook = notify::WebhookProvider::Open(
      {.url = settings.webhook, .token = settings.token, .timeout = settings.timeout});
  if (!webhook) return webhook.error();
  return std::unique_ptr<notify::Provider>(*std::move(webhook));
}

std::chrono::milliseconds LongestBatch(const SenderSettings& settings,
                                       const notify::RetryPolicy& retry) {
  const auto each = settings.attempts * (settings.timeout + retry.longest_pause);
  // All messages of a batch may be one user's, and then one worker has them all.
  const auto all =
      each * static_cast<int>(settings.workers * kMessagesPerWorker) + std::chrono::minutes(1);
  return std::min<std::chrono::milliseconds>(all, std::chrono::hours(24));  // what Kafka allows
}

}  // namespace

Result<std::unique_ptr<SenderService>> SenderService::Open(const SenderSettings& settings,
                                                           std::stop_token stop) {
  auto url = kafka::ParseUrl(settings.broker);
  if (!url) return url.error();
  std::unique_ptr<SenderService> service(new SenderService);
  service->stop_ = stop;
  service->heartbeat_ = settings.data + "/heartbeat";
  const bool console = settings.webhook.empty();
  service->batch_ = console ? kConsoleBatch : settings.workers * kMessagesPerWorker;

  auto provider = MakeProvider(settings);
  if (!provider) return provider.error();
  service->provider_ = *std::move(provider);
  auto delivered = notify::DeliveredIds::Open(settings.data, settings.remembered);
  if (!delivered) return delivered.error();
  service->delivered_ = *std::move(delivered);

  const Status made = kafka::MakeTopics(
      *url, {{settings.topic, kPartitions}, {std::string(notify::kDeadLetterTopic), 1}});
  if (!made) {
    if (made.error().code == Code::kInvalidArgument) return made.error();
    Log(Level::kWarn, "cannot make sure that the topics exist",
        {{"reason", std::string_view(made.error().message)}});
  }
  auto dead_letters = notify::kafka::DeadLetterTopic::Open(*url, settings.topic);
  if (!dead_letters) return dead_letters.error();
  service->dead_letters_ = *std::move(dead_letters);

  notify::SenderOptions options;
  options.workers = console ? 1 : settings.workers;
  options.retry.attempts = settings.attempts;
  service->sender_ = std::make_unique<notify::Sender>(
      *service->provider_, *service->delivered_,
      [self = service.get()](std::span<const notify::DeadLetter> letters) {
        return self->dead_letters_->Keep(letters);
      },
      options, std::move(stop));
  auto consumer =
      kafka::Consumer::Open({.url = *std::move(url),
                             .group = settings.group,
                             .topic = settings.topic,
                             .max_poll_interval = LongestBatch(settings, options.retry)});
  if (!consumer) return consumer.error();
  service->consumer_ = *std::move(consumer);
  return service;
}

void SenderService::Run() {
  Log(Level::kInfo, "sender is running");
  while (!stop_.stop_requested()) {
    Beat();
    std::vector<kafka::Incoming> messages = consumer_->Poll(batch_, kWait);
    if (!messages.empty()) Commit(sender_->Handle(std::move(messages)));
  }
  const notify::SenderCounts& counts = sender_->counts();
  Log(Level::kInfo, "sender has stopped",
      {{"delivered", counts.delivered},
       {"duplicates", counts.duplicates},
       {"malformed", counts.malformed},
       {"undeliverable", counts.undeliverable}});
}

void SenderService::Commit(std::span<const kafka::Position> positions) {
  for (;;) {
    const Status committed = consumer_->Commit(positions);
    if (committed) return;
    Log(Level::kWarn, "offsets are not committed",
        {{"reason", std::string_view(committed.error().message)}});
    // Not ours any more: who has the partitions now is given the messages, and their ids are known.
    if (committed.error().code == Code::kFailedPrecondition) return;
    if (!notify::Sleep(kCommitPause, stop_)) return;
  }
}

// For health checks: the file is as old as the last poll.
void SenderService::Beat() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_beat_ < kBeatPause) return;
  last_beat_ = now;
  std::ofstream(heartbeat_) << "alive\n";
}

}  // namespace weir::app
