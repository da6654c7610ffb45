#include "policy/definition.h"

#include <utility>

namespace weir::policy {

Definition AsInFile(Definition definition) {
  definition.shadow = definition.shadow_in_file.value_or(definition.shadow);
  definition.shadow_in_file.reset();
  return definition;
}

EntryMatch MakeEntryMatch(std::string name, std::string_view value) {
  if (value == "*") return {std::move(name), MatchKind::kAny, {}, false};
  if (value.ends_with('*')) {
    value.remove_suffix(1);
    return {std::move(name), MatchKind::kPrefix, std::string(value), false};
  }
  return {std::move(name), MatchKind::kExact, std::string(value), false};
}

std::string MatchText(const EntryMatch& entry) {
  switch (entry.kind) {
    case MatchKind::kAny:
      return "*";
    case MatchKind::kPrefix:
      return entry.text + "*";
    case MatchKind::kExact:
      return entry.text;
  }
  return {};
}

std::optional<ChargeMode> ParseChargeMode(std::string_view text) noexcept {
  for (const ChargeMode mode : {ChargeMode::kAllOrNone, ChargeMode::kEach, ChargeMode::kAlways}) {
    if (text == ChargeModeName(mode)) return mode;
  }
  return std::nullopt;
}

std::string_view ChargeModeName(ChargeMode value) noexcept {
  switch (value) {
    case ChargeMode::kAllOrNone:
      return "all_or_none";
    case ChargeMode::kEach:
      return "each";
    case ChargeMode::kAlways:
      return "always";
  }
  return {};
}

std::optional<OnStoreError> ParseOnStoreError(std::string_view text) noexcept {
  if (text == "allow") return OnStoreError::kAllow;
  if (text == "deny") return OnStoreError::kDeny;
  if (text == "local") return OnStoreError::kLocal;
  return std::nullopt;
}

std::string_view OnStoreErrorName(OnStoreError value) noexcept {
  switch (value) {
    case OnStoreError::kAllow:
      return "allow";
    case OnStoreError::kDeny:
      return "deny";
    case OnStoreError::kLocal:
      return "local";
  }
  return {};
}

std::optional<Mode> ParseMode(std::string_view text) noexcept {
  if (text == "exact") return Mode::kExact;
  if (text == "leased") return Mode::kLeased;
  return std::nullopt;
}

std::string_view ModeName(Mode value) noexcept {
  return value == Mode::kLeased ? "leased" : "exact";
}

std::string ChargingJson(Mode mode, bool overdraw, ChargeMode charge) {
  std::string json;
  if (mode != Mode::kExact) json.append(",\"mode\":\"").append(ModeName(mode)).append("\"");
  if (overdraw) json += ",\"overdraw\":true";
  if (charge != ChargeMode::kAllOrNone) {
    json.append(",\"charge\":\"").append(ChargeModeName(charge)).append("\"");
  }
  return json;
}

}  // namespace weir::policy
