#pragma once

// Jobs of a Database that return a value.

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "drivers/sqlite/connection.h"
#include "drivers/sqlite/database.h"
#include "weir/result.h"

namespace weir::sqlite {

/// Runs `work(connection, arguments…) → Result<T>` as a job, in one of Database's ways to run one,
/// and passes on its value.
template <typename T, typename Work, typename... Arguments>
void RunFor(Database& database, void (Database::*way)(Database::Job, Database::Done),
            std::function<void(Result<T>)> done, Work work, Arguments... arguments) {
  auto value = std::make_shared<std::optional<T>>();
  (database.*way)(
      [value, work = std::move(work),
       ... arguments = std::move(arguments)](Connection& connection) -> Status {
        Result<T> result = work(connection, arguments...);
        if (!result.ok()) return result.error();
        *value = std::move(*result);
        return {};
      },
      [value, done = std::move(done)](const Status& status) {
        if (!status.ok()) return done(status.error());
        done(std::move(**value));
      });
}

/// `done` is called once it is on disk.
template <typename T, typename... Work>
void WriteFor(Database& database, std::function<void(Result<T>)> done, Work... work) {
  RunFor<T>(database, &Database::Write, std::move(done), std::move(work)...);
}

template <typename T, typename... Work>
void ReadFor(Database& database, std::function<void(Result<T>)> done, Work... work) {
  RunFor<T>(database, &Database::ReadLater, std::move(done), std::move(work)...);
}

}  // namespace weir::sqlite
