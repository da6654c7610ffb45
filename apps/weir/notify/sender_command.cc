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
    R"(Consumes events from a Kafka topic and delivers each with the provider of its channel: console:
prints, https://… is a webhook (2xx means delivered), smtp://host/?from=ADDRESS is a mail server.
No event is lost, and repeated IDs are skipped. With --store, the state of each message is recorded,
and quiet hours and opt-outs are respected. SIGTERM finishes the deliveries in progress.
See docs/guide/sender.md

  weir sender --store postgres://weir@db/weir --provider email=smtp://mail/?from=weir@example.com
)";

int Run(const SenderSettings& settings) {
  // Blocked before any thread is created, so that all of them inherit it.
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
  return 0;
}

void Configure(Syntax word) {
  auto settings = std::make_shared<SenderSettings>();
  auto timeout = std::make_shared<double>(5.0);
  word.AddOption("--broker", settings->broker, "URL of Kafka")
      .Env("WEIR_NOTIFY_BROKER")
      .ShowDefault();
  word.AddOption("--data", settings->data, "Folder for the IDs of delivered messages")
      .Env("WEIR_SENDER_DATA")
      .ShowDefault();
  word.AddOption("--group", settings->group, "Consumer group; its members share the partitions")
      .ShowDefault();
  word.AddOption("--topic", settings->topic, "The topic to consume").ShowDefault();
  word.AddOption("--store", settings->store, "The gateway's database: postgres://…")
      .Env("WEIR_NOTIFY_STORE");
  word.AddOption("--provider", settings->providers,
                 "Provider to deliver with, as [CHANNEL=]URL; repeatable")
      .Env("WEIR_SENDER_PROVIDERS")
      .Delimiter(',');
  word.AddOption("--webhook", settings->webhook, "Same as --provider URL")
      .Env("WEIR_SENDER_WEBHOOK");
  word.AddOption("--metrics", settings->metrics,
                 "Serve GET /metrics on this address, or on this port of 127.0.0.1")
      .Env("WEIR_SENDER_METRICS");
  word.AddOption("--token", settings->token, "Bearer token for webhooks").Env("WEIR_SENDER_TOKEN");
  word.AddOption("--workers", settings->workers, "Concurrent deliveries")
      .Between(1, 64)
      .ShowDefault();
  word.AddOption("--attempts", settings->attempts,
                 "Attempts before a message becomes a dead letter, unless the provider is down")
      .Between(1, 20)
      .ShowDefault();
  word.AddOption("--timeout", *timeout, "Timeout of a delivery, in seconds")
      .AllowUnits()
      .Between(0.1, 60.0)
      .ShowDefault();
  word.AddOption("--remember", settings->remembered,
                 "Number of delivered IDs to remember, to skip duplicates")
      .Between(std::int64_t{1000}, std::int64_t{1'000'000'000})
      .ShowDefault();
  word.Footer(kFooter);
  word.OnRun([settings, timeout] {
    settings->timeout = std::chrono::milliseconds(static_cast<std::int64_t>(*timeout * 1000));
    return Run(*settings);
  });
}

const Command kSender("sender",
                      "Deliver notifications from Kafka to the console, webhooks or mail servers.",
                      Configure);

}  // namespace
}  // namespace weir::app::sender_command
