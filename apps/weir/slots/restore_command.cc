#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/folder_lock.h"
#include "command.h"
#include "drivers/sqlite/database.h"
#include "remote/remote.h"
#include "slots/slots_target.h"
#include "slots/time.h"

// weir restore: puts a backup in place, and marks the events that may have been executed since it
// was made. According to the backup they are still to be executed; it cannot know better.

namespace weir::app::restore_command {
namespace {

namespace fs = std::filesystem;

struct Words {
  std::string backup;
  std::string data;
  std::string store;
};

constexpr const char* kParts[] = {"-wal", "-shm", ""};  // of a database; the last one to be moved

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Result<slots::Restored> MarkRestored(const std::string& url) {
  Result<std::unique_ptr<SlotsTarget>> target = OpenStore(url);
  if (!target.ok()) return target.error();
  std::promise<Result<slots::Restored>> promise;
  (*target)->store()->MarkRestored(
      0, [&promise](Result<slots::Restored> restored) { promise.set_value(std::move(restored)); });
  return promise.get_future().get();
}

Status CheckReadable(const std::string& path) {
  const Result<std::ifstream> file = OpenFile(path);
  return file.ok() ? Status() : Status(Invalid(path + ": " + file.error().message));
}

// Before anything is replaced or marked.
Status CheckDatabase(const std::string& path, const std::string& backup) {
  Result<std::unique_ptr<sqlite::Database>> database = sqlite::Database::Open({.path = path});
  if (!database.ok()) return Invalid(backup + ": not a database of Weir: it cannot be opened");
  return (*database)->Read([&](sqlite::Connection& connection) -> Status {
    const auto text = [](const sqlite::Statement& row) { return std::string(row.Text(0)); };
    const auto verdict = connection.ReadFirst("PRAGMA integrity_check(1)", text);
    if (!verdict.ok()) return Invalid(backup + ": " + verdict.error().message);
    if (*verdict != "ok") return Invalid(backup + ": damaged: " + verdict->value_or(""));
    const auto known = connection.ReadNumber(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'");
    if (!known.ok()) return known.error();
    if (*known > 0) return {};
    return Invalid(backup + ": not a database of Weir");
  });
}

void RemoveDatabase(const std::string& path) {
  std::error_code ignored;
  for (const char* part : kParts) fs::remove(path + part, ignored);
}

/// Moves a database with its log; missing files are skipped.
Status MoveDatabase(const std::string& from, const std::string& to) {
  for (const char* part : kParts) {
    std::error_code error;
    if (!Exists(from + part)) continue;
    fs::rename(from + part, to + part, error);
    if (error) return Error{Code::kUnavailable, to + part + ": " + error.message()};
  }
  return {};
}

Status CopyDatabase(const std::string& from, const std::string& to) {
  for (const char* part : {"-wal", ""}) {
    std::error_code error;
    if (*part != '\0' && !Exists(from + part)) continue;
    fs::copy_file(from + part, to + part, error);
    if (error) return Error{Code::kInvalidArgument, from + part + ": " + error.message()};
  }
  return {};
}

/// Where the previous database is kept.
std::string KeptAs(const std::string& database) {
  std::string kept = database + ".before-restore";
  for (int n = 2; Exists(kept); ++n) {
    kept = database + ".before-restore-" + std::to_string(n);
  }
  return kept;
}

/// In a database that is there: SQLite would make one of any name, in which nothing is to be
/// marked, and the payments of the right one would be executed again.
Result<slots::Restored> MarkOnly(const std::string& url) {
  constexpr std::string_view kFile = "sqlite:";
  if (url.starts_with(kFile) && url.size() > kFile.size()) {
    const std::string path = url.substr(kFile.size());
    if (Status there = CheckReadable(path); !there.ok()) return there.error();
    if (Status good = CheckDatabase(path, path); !good.ok()) return good.error();
  }
  return MarkRestored(url);
}

Result<slots::Restored> PutInPlace(const Words& words) {
  // First, so that a misspelt name leaves no folder behind.
  if (Status there = CheckReadable(words.backup); !there.ok()) return there.error();
  std::error_code error;
  fs::create_directories(words.data, error);
  if (error) return Error{Code::kUnavailable, words.data + ": " + error.message()};
  const Result<FolderLock> lock = FolderLock::Take(words.data);
  if (!lock.ok()) return lock.error();
  const std::string database = words.data + "/weir.db";
  const std::string copy = database + ".restoring";
  RemoveDatabase(copy);
  Status s = CopyDatabase(words.backup, copy);
  if (s.ok()) s = CheckDatabase(copy, words.backup);
  if (!s.ok()) {
    RemoveDatabase(copy);
    return s.error();
  }
  Result<slots::Restored> restored = MarkRestored("sqlite:" + copy);
  if (!restored.ok()) return restored;
  const std::string kept = KeptAs(database);
  const bool replaced = Exists(database);
  if (s = MoveDatabase(database, kept); !s.ok()) return s.error();
  if (s = MoveDatabase(copy, database); !s.ok()) return s.error();
  std::cout << "restored " << database << " from " << words.backup << '\n';
  if (replaced) std::cout << "the previous database is " << kept << '\n';
  return restored;
}

void Tell(const slots::Restored& restored) {
  const std::string newest = restored.newest == 0 ? "" : slots::FormatInstant(restored.newest);
  const std::string until = slots::FormatInstant(restored.until);
  std::cout << (newest.empty() ? "no slot has changed in the backup yet"
                               : "the last change to a slot in the backup: " + newest)
            << '\n'
            << "events that may have been executed already: " << restored.marked << " (due by "
            << until << ")\n"
            << "They will be delivered with Weir-Redelivered: true, and so will events that are\n"
               "assigned again for a time before "
            << until << ".\n\nWhat happened after the backup is lost:\n"
            << "  slots     events assigned since: import their feeds again. Events cancelled or\n"
               "            moved since are back at their old times: cancel or move them again,\n"
               "            before you start a dispatcher. One that was moved may have been\n"
               "            executed: if you move it again, it is marked as well\n"
               "  caps      the window that is running now may execute its maximum once more\n"
               "  notify    messages accepted since, and what they count against caps; messages\n"
               "            that were waiting in the backup may be sent again\n"
               "  policies  changes to policies and user limits since, and their audit log\n"
               "Limits are not part of a backup.\n";
}

int RunRestore(const Words& words) {
  const bool file = !words.backup.empty() && !words.data.empty();
  if (file == !words.store.empty() || (!file && !words.backup.empty())) {
    return Fail({Code::kInvalidArgument, "give a backup and --data, or only --store"});
  }
  const Result<slots::Restored> restored = file ? PutInPlace(words) : MarkOnly(words.store);
  if (!restored.ok()) {
    const int code = Fail(restored.error());
    // Not an unreachable service: the folder is in use, or the disk is full.
    return file && code == kExitUnreachable ? kExitNo : code;
  }
  Tell(*restored);
  return 0;
}

void Configure(Syntax word) {
  auto words = std::make_shared<Words>();
  word.AddOption("backup", words->backup, "The backup of weir.db");
  word.AddOption("--data", words->data, "The service's data folder; the service must be stopped");
  word.AddOption("--store", words->store,
                 "Only mark events, in a database that has been restored: postgres://… or "
                 "sqlite:FILE");
  word.Footer(
      "Stop the service and all dispatchers first. Events that were due since the backup may have\n"
      "been executed: they are marked, so that they are delivered with Weir-Redelivered: true.\n\n"
      "  weir restore /backups/weir.db --data /var/lib/weir\n"
      "  weir restore --store postgres://weir@db/weir");
  word.OnRun([words] { return RunRestore(*words); });
}

const Command kRestore("restore", "Restore a backup without executing payments again unnoticed.",
                       Configure);

}  // namespace
}  // namespace weir::app::restore_command
