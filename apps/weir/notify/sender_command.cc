#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <iostream>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "command.h"
#include "notify/sender_service.h"
#include "telemetry/log.h"

namespace weir::app::sender_command {
namespace {

constexpr const char* kFooter =
    R"(Takes events off a Kafka topic and delivers each to the provider of its channel: console:
prints, https://… is a webhook (2xx is delivered), smtp://host/?from=ADDRESS a mail server. None is
lost, and an id that comes again is skipped. With --store, what became of each message is reported,
and quiet hours and opt-outs are kept. SIGTERM finishes what is in hand. See docs/guide/sender.md

  weir sender --store postgres://weir@db/weir --provider email=smtp://mail/?from=weir@example.com
)";

int Run(const SenderSettings& settings) {
  // Blocked before any thread is made, so that all of them inherit it.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  std::stop_source stop;
  const std::jthread watcher([&stop, &signals](const std::stop_token& ended) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 100'000'000};
    while (!ended.stop_requested()) {
      if (sigtimedwait(&signals, nullptr, &pause) > 0) stop.request_stop();
    }
  });
  auto service = SenderService::Open(settings, stop.get_token());
  if (!service) {
    telemetry::FlushLog();
    std::cerr << "weir: " << service.error().message << '\n';
    return StartFailure(service.error());
  }
  (*service)->Run();
  service->reset();
  telemetry::FlushLog();
  return 0;
}

void Configure(CLI::App& word, int& exit_code) {
  auto settings = std::make_shared<SenderSettings>();
  auto timeout = std::make_shared<double>(5.0);
  word.add_option("--broker", settings->broker, "Kafka's address.")
      ->envname("WEIR_NOTIFY_BROKER")
      ->capture_default_str();
  word.add_option("--data", settings->data, "Where the ids of what was delivered are kept.")
      ->envname("WEIR_SENDER_DATA")
      ->capture_default_str();
  word.add_option("--group", settings->group, "Consumer group; its members share the partitions.")
      ->capture_default_str();
  word.add_option("--topic", settings->topic, "The topic to consume.")->capture_default_str();
  word.add_option("--store", settings->store, "Where the gateway keeps users: postgres://…")
      ->envname("WEIR_NOTIFY_STORE");
  word.add_option("--provider", settings->providers, "Who delivers: [CHANNEL=]URL; several times.")
      ->envname("WEIR_SENDER_PROVIDERS")
      ->delimiter(',');
  word.add_option("--webhook", settings->webhook, "The same as --provider URL.")
      ->envname("WEIR_SENDER_WEBHOOK");
  word.add_option("--metrics", settings->metrics, "HOST:PORT that serves GET /metrics.")
      ->envname("WEIR_SENDER_METRICS");
  word.add_option("--token", settings->token, "Bearer token for webhooks.")
      ->envname("WEIR_SENDER_TOKEN");
  word.add_option("--workers", settings->workers, "Deliveries at the same time.")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  word.add_option("--attempts", settings->attempts, "Attempts before a message is a dead letter.")
      ->check(CLI::Range(1, 20))
      ->capture_default_str();
  word.add_option("--timeout", *timeout, "Seconds that a delivery may take.")
      ->check(CLI::Range(0.1, 60.0))
      ->capture_default_str();
  word.add_option("--remember", settings->remembered, "Ids that are kept to recognize repetitions.")
      ->check(CLI::Range(std::int64_t{1000}, std::int64_t{1'000'000'000}))
      ->capture_default_str();
  word.footer(kFooter);
  word.callback([settings, timeout, &exit_code] {
    settings->timeout = std::chrono::milliseconds(static_cast<std::int64_t>(*timeout * 1000));
    exit_code = Run(*settings);
  });
}

const Command kSender("sender",
                      "Deliver notifications from Kafka: to the console, webhooks or mail servers.",
                      Configure);

}  // namespace
}  // namespace weir::app::sender_command
