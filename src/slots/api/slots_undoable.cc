#include "slots/api/slots_undoable.h"

#include <optional>
#include <utility>

#include "slots/api/slots_json.h"

namespace weir::slots {
namespace {

using ConfigState = admin::Undoable::State;

std::optional<std::string> NameOf(const http::Request& request) {
  if (!request.params.empty()) return request.params.front();
  Result<Config> config = ParseConfig(request.body);
  if (!config.ok()) return std::nullopt;
  return std::move(config->name);
}

}  // namespace

admin::Undoable SlotConfigs(SlotStore& store, std::function<void(const std::string&)> forget) {
  const auto read = [&store](std::string name,
                             const admin::Undoable::Done<Result<ConfigState>>& done) {
    store.GetConfig(std::move(name), [done](Result<std::optional<Config>> config) {
      if (!config.ok()) return done(config.error());
      if (!config->has_value()) return done(ConfigState());
      done(ConfigState(ConfigBody(**config)));
    });
  };
  const auto restore = [&store, forget = std::move(forget)](
                           std::string name, const ConfigState& wanted,
                           const admin::Undoable::Done<Status>& done) {
    const auto told = [forget, name, done](const auto& result) {
      forget(name);
      done(result.ok() ? Status() : Status(result.error()));
    };
    if (!wanted) return store.Deactivate(std::move(name), told);
    Result<Config> config = ParseConfig(*wanted);
    if (!config.ok()) return done(config.error());
    store.PutConfig(std::move(*config), told);
  };
  return {.kind = "slots", .name_of = NameOf, .read = read, .restore = restore};
}

}  // namespace weir::slots
