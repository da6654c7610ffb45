#include "notify/sender_service.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <fstream>
#include <future>
#include <iostream>
#include <utility>
#include <vector>

#include "base/url.h"
#include "drivers/kafka/topics.h"
#include "drivers/kafka/url.h"
#include "library/backends.h"
#include "notify/providers.h"
#include "plaintext.h"
#include "telemetry/log.h"
#include "weir/clock.h"

namespace weir::app {
namespace {

using telemetry::Level;
using telemetry::Log;

constexpr std::chrono::milliseconds kWait{250};
constexpr std::chrono::milliseconds kCommitPause{500};
constexpr std::chrono::seconds kBeatPause{2};
constexpr std::size_t kConsoleBatch = 500;
// A worker with a dead webhook needs attempts × (timeout + pause) for each message of its
// share, and if the store is down waits for that, too; only this few fit between two polls.
constexpr std::size_t kMessagesPerWorker = 4;
constexpr int kPartitions = 3;
constexpr std::chrono::seconds kReleasePause{1};
constexpr std::size_t kReleaseBatch = 500;
constexpr std::chrono::seconds kFiguresPause{3};

notify::ProviderOptions ProvidersOf(const SenderSettings& settings) {
  notify::ProviderOptions options{
      .routes = settings.providers, .token = settings.token, .timeout = settings.timeout};
  if (!settings.webhook.empty()) options.routes.push_back(settings.webhook);
  return options;
}

std::chrono::milliseconds LongestBatch(const SenderSettings& settings,
                                       const notify::RetryPolicy& retry) {
  const auto tries = settings.attempts * (settings.timeout + retry.longest_pause);
  const auto each =
      2 * tries + (settings.store.empty() ? retry.in_place * 5 / 4 : retry.longest_pause);
  // All messages of a batch may be for one user, and then one worker has them all.
  const auto all =
      each * static_cast<int>(settings.workers * kMessagesPerWorker) + std::chrono::minutes(1);
  return std::min<std::chrono::milliseconds>(all, std::chrono::hours(24));  // what Kafka allows
}

Status CheckStore(const std::string& url) {
  if (url.empty()) return {};
  if (!url.starts_with("postgres://") && !url.starts_with("postgresql://")) {
    return Error{Code::kInvalidArgument, "--store must be postgres://…"};
  }
  const Status good = library::FindBackend(url)->check_url(url);
  return good.ok() ? good : Status(Error{good.error().code, "--store: " + good.error().message});
}

/// Host, process and time: containers start with the same process id.
std::string NewName() {
  std::array<char, 64> host{};
  static_cast<void>(gethostname(host.data(), host.size() - 1));
  return std::string(host.data()) + "/" + std::to_string(getpid()) + "/" +
         std::to_string(SystemClock::Get().Now());
}

}  // namespace

Result<std::unique_ptr<SenderService>> SenderService::Open(const SenderSettings& settings,
                                                           const std::stop_token& stop) {
  // Before Kafka is waited for.
  if (Status good = CheckStore(settings.store); !good.ok()) return good.error();
  if (!settings.metrics.empty()) {
    if (Status good = MetricsDoor::Check(settings.metrics); !good.ok()) return good.error();
  }
  std::unique_ptr<SenderService> service(new SenderService);
  service->stop_ = stop;
  service->heartbeat_ = settings.data + "/heartbeat";
  if (Status opened = service->OpenParts(settings, stop); !opened.ok()) return opened.error();
  if (Status opened = service->OpenMetrics(settings.metrics); !opened.ok()) return opened.error();
  return service;
}

Status SenderService::OpenParts(const SenderSettings& settings, const std::stop_token& stop) {
  const notify::ProviderOptions providers = ProvidersOf(settings);
  const bool console = notify::OnlyConsole(providers);
  batch_ = console ? kConsoleBatch : settings.workers * kMessagesPerWorker;
  auto provider = notify::OpenProviders(providers);
  if (!provider) return Error{provider.error().code, "--provider: " + provider.error().message};
  provider_ = *std::move(provider);
  notify::SenderOptions options;
  options.workers = console ? 1 : settings.workers;
  options.retry.attempts = settings.attempts;
  if (Status opened = OpenKafka(settings, options.retry); !opened.ok()) return opened;
  auto delivered = notify::DeliveredIds::Open(settings.data, settings.remembered);
  if (!delivered) return delivered.error();
  delivered_ = *std::move(delivered);
  if (!settings.store.empty()) {
    WarnOfPlaintext("--store", settings.store);
    notify::postgres::LedgerOptions ledger;
    ledger.url = settings.store;
    log_ = std::make_unique<notify::postgres::PostgresLedger>(std::move(ledger), nullptr,
                                                              SystemClock::Get());
  }
  sender_ = std::make_unique<notify::Sender>(
      notify::SenderParts{*provider_, *delivered_,
                          [this](std::span<const notify::DeadLetter> letters) {
                            return dead_letters_->Keep(letters);
                          },
                          stats_, SystemClock::Get(), log_.get(), [this] { Beat(); }},
      options, stop);
  return {};
}

Status SenderService::OpenKafka(const SenderSettings& settings, const notify::RetryPolicy& retry) {
  auto url = kafka::ParseUrl(settings.broker);
  if (!url) {
    return Error{url.error().code,
                 "--broker " + WithoutSecrets(settings.broker) + ": " + url.error().message};
  }
  const Status made = kafka::MakeTopics(
      *url, {{settings.topic, kPartitions}, {std::string(notify::kDeadLetterTopic), 1}});
  if (!made) {
    if (made.error().code == Code::kInvalidArgument) return made.error();
    Log(Level::kWarn, "cannot find or create the topics",
        {{"reason", std::string_view(made.error().message)}});
  }
  auto dead_letters = notify::kafka::DeadLetterTopic::Open(*url, settings.topic);
  if (!dead_letters) return dead_letters.error();
  dead_letters_ = *std::move(dead_letters);
  auto publisher = notify::kafka::KafkaPublisher::Open(settings.broker, {.topic = settings.topic});
  if (!publisher) return publisher.error();
  publisher_ = *std::move(publisher);
  auto consumer = kafka::Consumer::Open({.url = *std::move(url),
                                         .group = settings.group,
                                         .topic = settings.topic,
                                         .max_poll_interval = LongestBatch(settings, retry)});
  if (!consumer) return consumer.error();
  consumer_ = *std::move(consumer);
  return {};
}

Status SenderService::OpenMetrics(const std::string& address) {
  if (address.empty()) return {};
  registry_.Add(telemetry::CollectProcess);
  registry_.Add([this](telemetry::TextWriter& out) {
    stats_.Collect(out, notify::NowMicros(SystemClock::Get()));
    out.Gauge("weir_notify_lag", "Messages waiting in the sender's partitions of the topic.");
    out.Sample(static_cast<std::uint64_t>(std::max<std::int64_t>(lag_.load(), 0)));
    if (!log_) return;
    out.Gauge("weir_notify_store_up", "1 if the last query to the message database succeeded.");
    out.Sample(std::uint64_t{log_->up() ? 1U : 0U});
  });
  auto door = MetricsDoor::Open(address, registry_, std::cout);
  if (!door) return door.error();
  metrics_ = *std::move(door);
  return {};
}

void SenderService::ReportFigures(const std::stop_token& ended) {
  std::mutex mutex;
  std::condition_variable_any changed;
  while (!ended.stop_requested()) {
    notify::SenderFigures figures = stats_.figures();
    figures.lag = std::max<std::int64_t>(lag_.load(), 0);
    log_->NoteSender(name_, figures);
    std::unique_lock lock(mutex);
    changed.wait_for(lock, ended, kFiguresPause, [] { return false; });
  }
  notify::SenderFigures last = stats_.figures();
  last.senders = 0;
  log_->NoteSender(name_, last);
}

void SenderService::Run() {
  Log(Level::kInfo, "sender started");
  if (!log_) {
    Log(Level::kInfo,
        "no --store: message states are not recorded, and quiet hours and opt-outs are ignored");
  }
  if (log_) {
    name_ = NewName();
    figures_ = std::jthread([this](const std::stop_token& ended) { ReportFigures(ended); });
  }
  while (!stop_.stop_requested()) {
    Beat();
    Release();
    std::vector<kafka::Incoming> messages = consumer_->Poll(batch_, kWait);
    if (!messages.empty()) Commit(sender_->Handle(std::move(messages)));
  }
  if (figures_.joinable()) {
    figures_.request_stop();
    figures_.join();
  }
  using notify::DeliveryStats;
  Log(Level::kInfo, "sender stopped",
      {{"delivered", stats_.count(DeliveryStats::kDelivered)},
       {"duplicates", stats_.count(DeliveryStats::kDuplicate)},
       {"dead", stats_.count(DeliveryStats::kDead)},
       {"delayed", stats_.count(DeliveryStats::kDelayed)}});
}

void SenderService::Commit(std::span<const kafka::Position> positions) {
  for (;;) {
    Beat();  // a restart does not help a broker that stands still
    const Status committed = consumer_->Commit(positions);
    if (committed) return;
    Log(Level::kWarn, "cannot commit offsets",
        {{"reason", std::string_view(committed.error().message)}});
    // Not ours any more: the partitions' new owner gets the messages, and their ids are known.
    if (committed.error().code == Code::kFailedPrecondition) return;
    if (!notify::Sleep(kCommitPause, stop_)) return;
  }
}

// For health checks: the file is as old as the last poll or commit, or the last second of waiting.
void SenderService::Beat() {
  const std::lock_guard lock(beating_);
  const auto now = std::chrono::steady_clock::now();
  if (now - last_beat_ < kBeatPause) return;
  last_beat_ = now;
  std::ofstream(heartbeat_) << "alive\n";
}

// Delayed messages whose time has come go onto the topic again, where any sender finds them.
void SenderService::Release() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_release_ < kReleasePause) return;
  last_release_ = now;
  lag_ = consumer_->Lag();
  if (!log_) return;
  auto due = log_->TakeDue(notify::NowMicros(SystemClock::Get()), kReleaseBatch);
  if (!due) {
    Log(Level::kWarn, "cannot release delayed messages",
        {{"reason", std::string_view(due.error().message)}});
    return;
  }
  std::vector<std::string> ids;
  std::vector<std::future<Status>> told;
  for (const std::string& text : due->events) {
    Result<notify::Event> event = notify::DecodeEvent(text);
    if (!event.ok()) continue;  // cannot happen: it was valid when it was stored
    ids.push_back(event->id);
    auto promise = std::make_shared<std::promise<Status>>();
    told.push_back(promise->get_future());
    publisher_->Publish(*std::move(event),
                        [promise](Status status) { promise->set_value(std::move(status)); });
  }
  std::vector<std::string> published;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (told[i].get().ok()) published.push_back(ids[i]);
  }
  // The rest is taken again in a minute, and recognized by its id if it was published after all.
  if (!published.empty()) static_cast<void>(log_->Forget(published, due->lease));
}

}  // namespace weir::app
