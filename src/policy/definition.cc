#include "policy/definition.h"

#include <utility>

namespace weir::policy {
namespace {

/// How much of a value a message repeats.
constexpr std::size_t kShownBytes = 64;

/// Which kind of pattern of another program a text looks like; empty: none. Pass it without a `*`
/// at its end, which is a pattern here, too.
std::string_view LooksLike(std::string_view text) {
  if (text.find('*') != text.npos) return "a wildcard";
  if (text.starts_with('~') || text.starts_with('^')) return "a regular expression";
  for (const std::string_view part : {".+", "\\d", "\\w", "[0-9", "[a-z", "[A-Z", "(?"}) {
    if (text.find(part) != text.npos) return "a regular expression";
  }
  return {};
}

}  // namespace

Definition AsInFile(Definition definition) {
  definition.shadow = definition.shadow_in_file.value_or(definition.shadow);
  definition.shadow_in_file.reset();
  return definition;
}

EntryMatch MakeEntryMatch(std::string name, std::string_view value) {
  if (value.starts_with('=')) {
    return {std::move(name), MatchKind::kExact, std::string(value.substr(1)), false};
  }
  if (value == "*") return {std::move(name), MatchKind::kAny, {}, false};
  if (value.ends_with('*')) {
    value.remove_suffix(1);
    return {std::move(name), MatchKind::kPrefix, std::string(value), false};
  }
  return {std::move(name), MatchKind::kExact, std::string(value), false};
}

Result<EntryMatch> ReadEntryMatch(std::string name, std::string_view value) {
  EntryMatch entry = MakeEntryMatch(std::move(name), value);
  const bool marked = value.starts_with('=');
  if (const std::string_view why = marked ? "" : LooksLike(entry.text); !why.empty()) {
    std::string message = "'" + std::string(value.substr(0, kShownBytes)) + "' looks like ";
    message.append(why).append(
        ", which is not supported: a value is matched exactly, \"*\" matches every value and a '*' "
        "at the end, as in \"/v1/*\", every value with this prefix. To match exactly this text, "
        "write \"=");
    message.append(value.substr(0, kShownBytes)).append("\"");
    return Error{Code::kInvalidArgument, std::move(message)};
  }
  return entry;
}

Status CheckBareKey(std::string_view key) {
  // Only patterns unlikely to be meant literally: there is no other way to write a bare key.
  const bool wildcard = key.starts_with('*') || key.ends_with('*');
  const bool regex = key.starts_with('^') || key.starts_with("~^");
  const std::string_view why = wildcard ? "a wildcard" : regex ? "a regular expression" : "";
  if (why.empty()) return {};
  std::string message = "'" + std::string(key.substr(0, kShownBytes)) + "' looks like ";
  message.append(why).append(
      ", but a bare key is compared exactly; to match many values use match, such as { user: \"*\" "
      "}");
  return Error{Code::kInvalidArgument, std::move(message)};
}

std::string MatchText(const EntryMatch& entry) {
  const bool exact = entry.kind == MatchKind::kExact;
  const bool misread =
      entry.text.starts_with('=') || entry.text.ends_with('*') || !LooksLike(entry.text).empty();
  return exact && misread ? "=" + entry.text : PlainMatchText(entry);
}

std::string PlainMatchText(const EntryMatch& entry) {
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
  for (const ChargeMode mode :
       {ChargeMode::kAllOrNone, ChargeMode::kReports, ChargeMode::kEach, ChargeMode::kAlways}) {
    if (text == ChargeModeName(mode)) return mode;
  }
  return std::nullopt;
}

std::string_view ChargeModeName(ChargeMode value) noexcept {
  switch (value) {
    case ChargeMode::kAllOrNone:
      return "all_or_none";
    case ChargeMode::kReports:
      return "reports";
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
  if (text == "rate_leased") return Mode::kRateLeased;
  return std::nullopt;
}

std::string_view ModeName(Mode value) noexcept {
  switch (value) {
    case Mode::kExact:
      return "exact";
    case Mode::kLeased:
      return "leased";
    case Mode::kRateLeased:
      return "rate_leased";
  }
  return {};
}

void AppendCharging(JsonWriter& json, Mode mode, bool overdraw, ChargeMode charge) {
  if (mode != Mode::kExact) json.Field("mode", ModeName(mode));
  if (overdraw) json.Field("overdraw", true);
  if (charge != ChargeMode::kAllOrNone) json.Field("charge", ChargeModeName(charge));
}

}  // namespace weir::policy
