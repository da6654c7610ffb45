#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "drivers/sqlite/connection.h"
#include "slots/slot.h"
#include "weir/result.h"

namespace weir::slots::sqlite {

/// A config with the number that its windows and slots are kept under.
struct StoredConfig {
  std::int64_t id = 0;
  Config config;
};

/// The active version of `name`.
Result<std::optional<StoredConfig>> LoadActive(weir::sqlite::Connection& connection,
                                               std::string_view name);
/// The latest version of `name`, active or not.
Result<std::optional<StoredConfig>> LoadLatest(weir::sqlite::Connection& connection,
                                               std::string_view name);
/// All active configs by name; or, with a name, all of its versions, newest first.
Result<std::vector<Config>> LoadConfigs(weir::sqlite::Connection& connection,
                                        std::optional<std::string_view> name);
Result<std::string> NameOf(weir::sqlite::Connection& connection, std::int64_t id);

/// Inserts the next version and brings the windows of its size up to date: what slots of other
/// sizes take up in them, which are full under the new maximum, what each tenant has in them.
/// Answers the version.
Result<std::int64_t> InsertConfig(weir::sqlite::Connection& connection, const Config& config);
Result<bool> DeactivateConfig(weir::sqlite::Connection& connection, std::string_view name);

}  // namespace weir::slots::sqlite
