#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/duration.h"
#include "command.h"
#include "dispatch/dispatcher.h"
#include "metrics_door.h"
#include "remote/remote.h"
#include "slots/api/slots_watch.h"
#include "slots/slots_target.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "weir/clock.h"

namespace weir::app::dispatch_command {
namespace {

constexpr const char* kFooter =
    R"(Claims events and delivers each at its time: as JSON lines on standard output, to a webhook or to
Kafka. Any number of dispatchers share the work; if one is killed, another delivers its events,
marked as redelivered. No window exceeds its maximum, not even while overdue events are delivered.

A 2xx from the webhook means delivered; timeouts and statuses that say nothing about the event are
retried: 3xx, 401, 403, 404, 405, 407, 408, 425, 429 and 5xx. Any other status makes an event a dead
letter (`weir slots due --state FAILED`), and so do --attempts failures while other events are
delivered; failures of a target that is down do not count. SIGTERM finishes the events in progress.

  weir dispatch --config default --webhook https://bank.example/pay
)";

struct Settings {
  Access access;
  std::string store;
  DispatcherOptions options;
  WebhookTargetOptions webhook;
  std::string kafka;
  std::string topic = "weir-slots";
  std::string metrics;
  double lease = 30;
  double ahead = 0.5;
  double timeout = 5;
};

Result<std::unique_ptr<DeliveryTarget>> MakeTarget(const Settings& settings,
                                                   std::function<void()> on_gone) {
  if (!settings.webhook.url.empty() && !settings.kafka.empty()) {
    return Error{Code::kInvalidArgument, "give --webhook or --kafka, not both"};
  }
  if (!settings.webhook.url.empty()) return MakeWebhookTarget(settings.webhook);
  if (!settings.kafka.empty()) {
    return MakeKafkaTarget(settings.kafka, settings.topic, settings.options.timeout);
  }
  return MakeStdoutTarget(settings.options.timeout, std::move(on_gone));
}

/// GET /metrics: what the dispatcher does and, if it works on a database directly, the backlog
/// there; a service has that in its own metrics.
///
/// Thread safety: for the thread that created it.
class Metrics {
 public:
  /// The arguments must outlive this.
  Metrics(const Dispatcher& dispatcher, SlotsTarget& source) {
    registry_.Add(telemetry::CollectProcess);
    registry_.Add(
        [&dispatcher](telemetry::TextWriter& out) { Collect(dispatcher.standing(), out); });
    if (source.store() == nullptr) return;
    watch_.emplace(*source.store());
    registry_.Add([this](telemetry::TextWriter& out) { watch_->CollectStore(out); });
  }

  Status Open(const std::string& address) {
    // Standard output belongs to the events.
    auto door = MetricsDoor::Open(address, registry_, std::cerr);
    if (!door.ok()) return door.error();
    door_ = *std::move(door);
    if (watch_) seconds_ = std::jthread([this](const std::stop_token& stop) { Watch(stop); });
    return {};
  }

 private:
  void Watch(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any ended;
    while (!stop.stop_requested()) {
      watch_->OnSecond(SystemClock::Get().Now());
      std::unique_lock lock(mutex);
      ended.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
    }
  }

  telemetry::Registry registry_;
  std::optional<slots::SlotsWatch> watch_;
  std::unique_ptr<MetricsDoor> door_;
  std::jthread seconds_;
};

std::string DefaultName() {
  char host[64] = "dispatcher";
  static_cast<void>(gethostname(host, sizeof(host) - 1));
  return std::string(host) + "/" + std::to_string(getpid());
}

int Failed(const Error& error) {
  telemetry::FlushLog();
  std::cerr << "weir: " << error.message << '\n';
  return StartFailure(error);
}

int Run(Settings& settings) {
  // Blocked before any thread is created, so that all of them inherit it.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  const auto millis = [](double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  };
  settings.options.lease = millis(settings.lease);
  settings.options.ahead = millis(settings.ahead);
  settings.options.timeout = settings.webhook.timeout = millis(settings.timeout);
  if (settings.options.lease < 2 * settings.options.timeout) {
    return Failed({Code::kInvalidArgument, "--lease must be at least twice --delivery-timeout: " +
                                               FormatDuration(settings.options.lease) +
                                               " is less than 2 x " +
                                               FormatDuration(settings.options.timeout)});
  }
  if (settings.options.name.empty()) settings.options.name = DefaultName();

  std::stop_source stop;
  std::atomic<bool> gone = false;  // the reader of the events
  const std::jthread watcher([&](const std::stop_token& ended) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 100'000'000};
    while (!ended.stop_requested()) {
      if (sigtimedwait(&signals, nullptr, &pause) > 0 || gone) stop.request_stop();
    }
  });
  auto source =
      settings.store.empty() ? OpenService(settings.access.Open()) : OpenStore(settings.store);
  if (!source.ok()) return Failed(source.error());
  auto target = MakeTarget(settings, [&gone] { gone = true; });
  if (!target.ok()) return Failed(target.error());
  std::optional<Error> refused;
  settings.options.on_refused = [&](const Error& error) {
    refused = error;
    stop.request_stop();
  };
  Dispatcher dispatcher(**source, **target, settings.options);
  std::optional<Metrics> metrics;
  if (!settings.metrics.empty()) {
    metrics.emplace(dispatcher, **source);
    if (Status opened = metrics->Open(settings.metrics); !opened.ok()) {
      return Failed(opened.error());
    }
  }
  telemetry::Log(telemetry::Level::kInfo, "dispatcher started",
                 {{"name", std::string_view(settings.options.name)}});
  dispatcher.Run(stop.get_token());
  target->reset();
  const DispatchCounts counts = dispatcher.standing().counts;
  telemetry::Log(telemetry::Level::kInfo, "dispatcher stopped",
                 {{"delivered", counts.delivered},
                  {"redelivered", counts.redelivered},
                  {"retried", counts.retried},
                  {"dead", counts.dead},
                  {"left", counts.left},
                  {"lost", counts.lost}});
  if (refused) {
    telemetry::FlushLog();
    return Fail(*refused);
  }
  if (gone) return Failed({Code::kUnavailable, "nobody reads standard output any more"});
  return 0;
}

void Configure(Syntax word) {
  auto settings = std::make_shared<Settings>();
  settings->access.AddTo(word);
  word.AddOption("--store", settings->store,
                 "Use this store directly instead: sqlite:FILE or postgres://…");
  word.AddOption("--config", settings->options.configs, "The config; repeatable").Required();
  word.AddOption("--webhook", settings->webhook.url, "URL to POST events to")
      .Env("WEIR_DISPATCH_WEBHOOK");
  word.AddOption("--token", settings->webhook.token, "Bearer token for the webhook")
      .Env("WEIR_DISPATCH_TOKEN");
  word.AddOption("--workers", settings->webhook.workers, "Concurrent webhook requests")
      .Between(1, 256)
      .ShowDefault();
  word.AddOption("--kafka", settings->kafka, "Kafka to publish events to: kafka://…")
      .Env("WEIR_DISPATCH_KAFKA");
  word.AddOption("--topic", settings->topic, "Kafka topic").ShowDefault();
  word.AddOption("--attempts", settings->options.attempts,
                 "Failures before an event becomes a dead letter, not counting those of a "
                 "target that is down")
      .Between(1, 1000)
      .ShowDefault();
  word.AddOption("--delivery-timeout", settings->timeout, "Timeout of one delivery, in seconds")
      .AllowUnits()
      .Between(0.1, 300.0)
      .ShowDefault();
  word.AddOption("--lease", settings->lease, "Seconds a claim lasts, twice the timeout or more")
      .AllowUnits()
      .Between(0.5, 3600.0)
      .ShowDefault();
  word.AddOption("--ahead", settings->ahead, "Seconds before its time that an event is claimed")
      .AllowUnits()
      .Between(0.0, 60.0)
      .ShowDefault();
  word.AddOption("--in-hand", settings->options.most,
                 "Maximum number of claimed events in progress")
      .Between(std::size_t{1}, std::size_t{100'000})
      .ShowDefault();
  word.AddOption("--metrics", settings->metrics,
                 "Serve GET /metrics on this address, or on this port of 127.0.0.1")
      .Env("WEIR_DISPATCH_METRICS");
  word.AddOption("--name", settings->options.name,
                 "Name in the history of events (default: host/process)");
  word.Footer(kFooter);
  word.OnRun([settings] { return Run(*settings); });
}

const Command kDispatch("dispatch", "Deliver scheduled events at their times, under the cap.",
                        Configure);

}  // namespace
}  // namespace weir::app::dispatch_command
