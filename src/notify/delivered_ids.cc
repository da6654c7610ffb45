#include "notify/delivered_ids.h"

#include <array>
#include <filesystem>
#include <system_error>

#include "base/lasting.h"
#include "drivers/sqlite/migration.h"

namespace weir::notify {
namespace {

// seq increases with every ID, so the oldest are those far below the largest.
constexpr std::array<const char*, 2> kSteps = {
    "CREATE TABLE delivered (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE)",
    "ALTER TABLE delivered ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0"};

}  // namespace

Result<std::unique_ptr<DeliveredIds>> DeliveredIds::Open(const std::string& directory,
                                                         std::int64_t max) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) {
    return Error{CodeOfOpening(failed), "cannot create " + directory + ": " + failed.message()};
  }
  auto connection = sqlite::Connection::Open({.path = directory + "/sender.db"});
  if (!connection) return connection.error();
  if (Status migrated = sqlite::Migrate(**connection, "sender", kSteps); !migrated) {
    return migrated.error();
  }
  return std::unique_ptr<DeliveredIds>(new DeliveredIds(*std::move(connection), max));
}

Result<std::unordered_set<std::string>> DeliveredIds::Known(std::span<const std::string> ids) {
  std::unordered_set<std::string> known;
  for (const std::string& id : ids) {
    auto found = connection_->ReadNumber("SELECT 1 FROM delivered WHERE id = ?1", id);
    if (!found) return found.error();
    if (*found != 0) known.insert(id);
  }
  return known;
}

Result<Micros> DeliveredIds::CreatedAt(const std::string& id) {
  return connection_->ReadNumber("SELECT created_at FROM delivered WHERE id = ?1", id);
}

Status DeliveredIds::Add(std::span<const std::string> ids, std::span<const Micros> created) {
  if (ids.empty()) return {};
  if (Status begun = connection_->Execute("BEGIN IMMEDIATE"); !begun) return begun;
  Status added = Insert(ids, created);
  if (added) added = connection_->Execute("COMMIT");
  if (!added && !connection_->autocommit()) static_cast<void>(connection_->Execute("ROLLBACK"));
  return added;
}

Status DeliveredIds::Insert(std::span<const std::string> ids, std::span<const Micros> created) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Status inserted =
        connection_->Run("INSERT OR IGNORE INTO delivered (id, created_at) VALUES (?1, ?2)", ids[i],
                         i < created.size() ? created[i] : Micros{0});
    if (!inserted) return inserted;
  }
  return connection_->Run(
      "DELETE FROM delivered WHERE seq <= (SELECT max(seq) FROM delivered) - ?1", max_);
}

}  // namespace weir::notify
