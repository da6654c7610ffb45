#include "serve/notify_service.h"

#include <string>
#include <utility>

#include "notify/kafka/publisher.h"
#include "notify/postgres/gateway.h"
#include "notify/postgres/ledger.h"
#include "notify/providers.h"
#include "notify/redis/gateway.h"
#include "notify/sqlite/gateway.h"
#include "notify/sqlite/ledger.h"
#include "notify/sqlite/outbox_sender.h"
#include "plaintext.h"
#include "weir/clock.h"

namespace weir::app {
namespace {

constexpr std::size_t kWorkers = 8;
// Few enough that a provider that is down does not keep other users waiting for long.
constexpr std::size_t kMessagesPerWorker = 4;

notify::DefaultCap CapOf(const config::Config::Notify& wanted) {
  return {wanted.default_limit, wanted.default_window};
}

notify::sqlite::SenderOptions SenderOptionsOf(const notify::ProviderOptions& providers,
                                              int attempts) {
  notify::sqlite::SenderOptions options;
  options.retry.attempts = attempts;
  if (notify::OnlyConsole(providers)) return options;
  options.batch = kWorkers * kMessagesPerWorker;
  options.workers = kWorkers;
  return options;
}

/// Everything in this process: SQLite and an outbox.
class EmbeddedNotify final : public NotifyService {
 public:
  static Result<std::unique_ptr<NotifyService>> Open(const config::Config::Notify& wanted,
                                                     sqlite::Database& database) {
    std::unique_ptr<EmbeddedNotify> service(new EmbeddedNotify);
    const notify::ProviderOptions providers{.routes = wanted.providers, .token = wanted.token};
    auto provider = notify::OpenProviders(providers);
    if (!provider) {
      return Error{provider.error().code, "notify.providers: " + provider.error().message};
    }
    service->provider_ = std::move(*provider);
    auto gateway = notify::sqlite::SqliteGateway::Open(
        database, SystemClock::Get(), {}, [raw = service.get()] { raw->sender_->Wake(); });
    if (!gateway) return gateway.error();
    service->gateway_ = std::move(*gateway);
    service->sender_.emplace(
        database, *service->provider_, SystemClock::Get(),
        [raw = service->gateway_.get()](std::size_t events) { raw->Delivered(events); },
        SenderOptionsOf(providers, wanted.attempts));
    service->ledger_.emplace(database, SystemClock::Get(),
                             [raw = service.get()](std::size_t gone, std::size_t queued) {
                               raw->sender_->ForgetDead(gone);
                               raw->gateway_->Requeued(queued);
                               if (queued > 0) raw->sender_->Wake();
                             });
    notify::NotifyApi::Probes probes;
    probes.queue = [raw = service.get()] { return std::uint64_t{raw->gateway_->outbox()}; };
    probes.dead_letters = [raw = service.get()] { return raw->sender_->dead_letters(); };
    probes.deliveries = [raw = service.get()] { return &raw->sender_->stats(); };
    service->api_.emplace(*service->gateway_, SystemClock::Get(), std::move(probes), CapOf(wanted));
    service->ledger_api_.emplace(*service->ledger_);
    return std::unique_ptr<NotifyService>(std::move(service));
  }

  // The database still calls back into all parts, which may use each other then.
  void Close() override { sender_->Stop(); }

  notify::NotifyApi& api() noexcept override { return *api_; }
  notify::LedgerApi& ledger() noexcept override { return *ledger_api_; }
  bool up() const noexcept override { return true; }

 private:
  EmbeddedNotify() = default;

  std::optional<notify::NotifyApi> api_;
  std::optional<notify::LedgerApi> ledger_api_;
  std::unique_ptr<notify::Provider> provider_;
  std::unique_ptr<notify::sqlite::SqliteGateway> gateway_;
  std::optional<notify::sqlite::SqliteLedger> ledger_;
  std::optional<notify::sqlite::OutboxSender> sender_;
};

/// PostgreSQL and Kafka, with Redis in front if configured. `weir sender` delivers.
class BrokerNotify final : public NotifyService {
 public:
  static Result<std::unique_ptr<NotifyService>> Open(const config::Config::Notify& wanted) {
    std::unique_ptr<BrokerNotify> service(new BrokerNotify);
    auto publisher = notify::kafka::KafkaPublisher::Open(wanted.broker);
    if (!publisher) return publisher.error();
    service->publisher_ = std::move(*publisher);
    notify::postgres::Options options;
    options.url = wanted.store;
    service->postgres_ = std::make_unique<notify::postgres::PostgresGateway>(
        std::move(options), *service->publisher_, SystemClock::Get());
    notify::Gateway* gateway = service->postgres_.get();
    if (!wanted.cache.empty()) {
      notify::redis::Options cache;
      cache.url = wanted.cache;
      auto redis = notify::redis::RedisGateway::Open(std::move(cache), *service->postgres_,
                                                     *service->postgres_, *service->publisher_,
                                                     SystemClock::Get());
      if (!redis) return Error{redis.error().code, "notify.cache: " + redis.error().message};
      service->redis_ = std::move(*redis);
      gateway = service->redis_.get();
    }
    notify::postgres::LedgerOptions ledger;
    ledger.url = wanted.store;
    ledger.counts = true;
    service->ledger_ = std::make_unique<notify::postgres::PostgresLedger>(
        std::move(ledger), service->publisher_.get(), SystemClock::Get());
    notify::NotifyApi::Probes probes;
    probes.dead_letters = [raw = service->ledger_.get()] { return raw->dead_letters(); };
    probes.senders = [raw = service->ledger_.get()] { return raw->senders(); };
    service->api_.emplace(*gateway, SystemClock::Get(), std::move(probes), CapOf(wanted));
    service->ledger_api_.emplace(*service->ledger_);
    return std::unique_ptr<NotifyService>(std::move(service));
  }

  void Close() override {
    ledger_.reset();
    redis_.reset();
    postgres_.reset();
    publisher_.reset();
  }

  notify::NotifyApi& api() noexcept override { return *api_; }
  notify::LedgerApi& ledger() noexcept override { return *ledger_api_; }
  bool up() const noexcept override { return ledger_->up(); }

 private:
  BrokerNotify() = default;

  std::optional<notify::NotifyApi> api_;  // first, so destroyed last: the others answer through it
  std::optional<notify::LedgerApi> ledger_api_;
  // Each is used by those below it.
  std::unique_ptr<notify::kafka::KafkaPublisher> publisher_;
  std::unique_ptr<notify::postgres::PostgresGateway> postgres_;
  std::shared_ptr<notify::redis::RedisGateway> redis_;
  std::unique_ptr<notify::postgres::PostgresLedger> ledger_;
};

}  // namespace

Result<std::unique_ptr<NotifyService>> NotifyService::Open(const config::Config& config,
                                                           sqlite::Database& database) {
  const config::Config::Notify& wanted = config.notify;
  if (wanted.store == "sqlite:") {
    if (wanted.broker != "embedded:") {
      return Error{Code::kInvalidArgument,
                   "notify.broker: must be embedded: if notify.store is sqlite:"};
    }
    if (!wanted.cache.empty()) {
      return Error{Code::kInvalidArgument,
                   "notify.cache: not supported if notify.store is sqlite:"};
    }
    return EmbeddedNotify::Open(wanted, database);
  }
  if (wanted.broker == "embedded:") {
    return Error{Code::kInvalidArgument,
                 "notify.broker: must be kafka://host:9092 if notify.store is postgres://"};
  }
  if (!wanted.providers.empty()) {
    return Error{Code::kInvalidArgument,
                 "notify.providers: not used with Kafka; give them to `weir sender --provider`"};
  }
  WarnOfPlaintext("notify.store", wanted.store);
  return BrokerNotify::Open(wanted);
}

}  // namespace weir::app
