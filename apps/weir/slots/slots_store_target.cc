#include <filesystem>
#include <future>
#include <random>
#include <utility>

#include "drivers/sqlite/database.h"
#include "library/backends.h"
#include "plaintext.h"
#include "slots/postgres/slot_store.h"
#include "slots/slots_target.h"
#include "slots/sqlite/slot_store.h"

namespace weir::app {
namespace {

template <typename T, typename Call>
Result<T> Wait(Call call) {
  std::promise<Result<T>> promise;
  std::future<Result<T>> future = promise.get_future();
  call([&promise](Result<T> result) { promise.set_value(std::move(result)); });
  return future.get();
}

/// A store that this process has opened. As thread-safe as the store.
class StoreTarget final : public SlotsTarget {
 public:
  StoreTarget(std::unique_ptr<sqlite::Database> database, std::unique_ptr<slots::SlotStore> store)
      : database_(std::move(database)), store_(std::move(store)) {}

  Result<std::vector<slots::Answer>> Assign(std::vector<slots::Ask> asks) override {
    static thread_local std::mt19937_64 random{std::random_device{}()};
    for (slots::Ask& ask : asks) ask.random = static_cast<std::int64_t>(random() >> 1U);
    return Wait<std::vector<slots::Answer>>(
        [&](auto done) { store_->AssignMany(std::move(asks), std::move(done)); });
  }

  Result<slots::Config> GetConfig(const std::string& name) override {
    auto config = Wait<std::optional<slots::Config>>(
        [&](auto done) { store_->GetConfig(name, std::move(done)); });
    if (!config.ok()) return config.error();
    if (!config->has_value()) {
      return Error{Code::kNotFound, "there is no active config '" + name + "'"};
    }
    return std::move(**config);
  }

  Result<std::vector<slots::WindowLoad>> ListWindows(const std::string& config, slots::Millis from,
                                                     std::size_t limit) override {
    return Wait<std::vector<slots::WindowLoad>>(
        [&](auto done) { store_->ListWindows(config, from, limit, std::move(done)); });
  }

  Result<slots::Findings> Verify() override {
    return Wait<slots::Findings>([&](auto done) { store_->Verify(std::move(done)); });
  }

  Result<slots::Claim> Claim(const slots::ClaimRequest& request) override {
    slots::ClaimRequest noted = request;
    noted.noted = true;  // a service would write it to its audit log
    return Wait<slots::Claim>(
        [&](auto done) { store_->ClaimDue(std::move(noted), std::move(done)); });
  }

  Result<std::vector<slots::Finished>> Finish(const std::vector<slots::Finish>& ends) override {
    return Wait<std::vector<slots::Finished>>(
        [&](auto done) { store_->FinishMany(ends, std::move(done)); });
  }

  slots::SlotStore* store() override { return store_.get(); }

 private:
  std::unique_ptr<sqlite::Database> database_;
  std::unique_ptr<slots::SlotStore> store_;
};

}  // namespace

Result<std::unique_ptr<SlotsTarget>> OpenStore(const std::string& url) {
  WarnOfPlaintext("--store", url);
  const library::BackendKind* const kind = library::FindBackend(url);
  if (Status good = kind == nullptr ? Status() : kind->check_url(url); !good.ok()) {
    return Error{good.error().code, "--store: " + good.error().message};
  }
  if (url.starts_with("postgres://") || url.starts_with("postgresql://")) {
    return std::unique_ptr<SlotsTarget>(
        std::make_unique<StoreTarget>(nullptr, std::make_unique<slots::postgres::PostgresSlotStore>(
                                                   slots::postgres::Options{.url = url})));
  }
  if (!url.starts_with("sqlite:") || url.size() == 7) {
    return Error{Code::kInvalidArgument, "--store must be sqlite:FILE or postgres://…"};
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(url.substr(7), ignored)) {
    return Error{Code::kInvalidArgument, "--store " + url + ": is a directory; expected a file"};
  }
  auto database = sqlite::Database::Open({.path = url.substr(7)});
  if (!database.ok()) return database.error();
  auto store = slots::sqlite::SqliteSlotStore::Open(**database);
  if (!store.ok()) return store.error();
  return std::unique_ptr<SlotsTarget>(
      std::make_unique<StoreTarget>(std::move(*database), std::move(*store)));
}

}  // namespace weir::app
