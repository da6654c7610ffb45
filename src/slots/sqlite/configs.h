#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "drivers/sqlite/connection.h"
#include "slots/slot.h"
#include "weir/result.h"

namespace weir::slots::sqlite {

/// A config and the ID under which its windows and slots are stored.
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

/// Inserts the next version and updates the windows of its size: the room that slots of other
/// sizes take up in them, which are full under the new maximum, and each tenant's count in them.
/// Returns the version.
Result<std::int64_t> InsertConfig(weir::sqlite::Connection& connection, const Config& config);
Result<bool> DeactivateConfig(weir::sqlite::Connection& connection, std::string_view name);

}  // namespace weir::slots::sqlite
