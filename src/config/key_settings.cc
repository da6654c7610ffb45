#include "config/key_settings.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/percent.h"

namespace weir::config {
namespace {

/// Keys of this length cannot be guessed, at any speed; earlier versions accepted shorter ones.
constexpr std::size_t kMinKeyBytes = 16;

std::optional<Digest> ParseDigest(std::string_view hex) {
  Digest digest{};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = HexDigit(hex[2 * i]);
    const int low = HexDigit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return digest;
}

/// What access.open takes.
constexpr std::array<std::string_view, 6> kOpenable = {"none",  "check",        "give_back",
                                                       "slots", "slots_change", "send"};

constexpr std::string_view kDigestPrefix = "sha256:";

/// A key as it is, or from @file, as its first line.
Result<std::string> KeyText(std::string_view text) {
  if (!text.starts_with('@')) return std::string(text);
  const std::string path(text.substr(1));
  Result<std::string> line = ReadFirstLine(path);
  if (!line.ok()) return Invalid(path + ": " + line.error().message);
  return line;
}

/// The same, or from sha256:<hex>.
Result<Digest> ReadKey(std::string_view text, std::size_t shortest) {
  if (text.starts_with(kDigestPrefix)) {
    const auto digest = ParseDigest(text.substr(kDigestPrefix.size()));
    if (digest) return *digest;
    return Error{Code::kInvalidArgument, "expected 64 hexadecimal digits after 'sha256:'"};
  }
  const Result<std::string> key = KeyText(text);
  if (!key.ok()) return key.error();
  if (key->size() >= shortest) return Sha256(*key);
  return Error{Code::kInvalidArgument,
               "a key must have at least " + std::to_string(shortest) + " characters"};
}

/// Reads role+role:text; the text may contain colons.
template <typename Item>
Status ReadRolesOf(std::vector<Item>& items, Texts texts) {
  items.clear();
  for (const std::string& text : texts) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos || colon + 1 == text.size()) {
      return Error{Code::kInvalidArgument, "expected roles:name such as check+slots:payments"};
    }
    Result<access::Roles> roles = access::ParseRoles(text.substr(0, colon));
    if (!roles.ok()) return roles.error();
    items.push_back({text.substr(colon + 1), *roles});
  }
  return {};
}

}  // namespace

bool AnyShort(Texts texts) {
  return std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
    const Result<std::string> key = KeyText(text);
    return key.ok() && key->size() < kMinKeyBytes;
  });
}

Status SetKeys(std::vector<Digest>& keys, Texts texts) {
  constexpr std::size_t kShortest = 8;
  keys.clear();
  for (const std::string& text : texts) {
    const Result<Digest> digest = ReadKey(text, kShortest);
    if (!digest.ok()) return digest.error();
    keys.push_back(*digest);
  }
  return {};
}

Status SetAccessKeys(std::vector<Config::Access::Key>& keys, Texts texts) {
  keys.clear();
  for (const std::string& text : texts) {
    const std::size_t first = text.find(':');
    const std::size_t second = first == std::string::npos ? first : text.find(':', first + 1);
    if (first == 0 || second == std::string::npos) {
      return Error{Code::kInvalidArgument,
                   "expected name:roles:key such as ci:read+operate:@/run/secrets/ci"};
    }
    const std::string name = text.substr(0, first);
    Result<access::Roles> roles = access::ParseRoles(text.substr(first + 1, second - first - 1));
    if (!roles.ok()) return Error{Code::kInvalidArgument, name + ": " + roles.error().message};
    Result<Digest> digest = ReadKey(std::string_view(text).substr(second + 1), kMinKeyBytes);
    if (!digest.ok()) return Error{Code::kInvalidArgument, name + ": " + digest.error().message};
    for (const Config::Access::Key& other : keys) {
      if (other.name == name) return Error{Code::kInvalidArgument, name + ": given twice"};
    }
    keys.push_back({name, *digest, *roles});
  }
  return {};
}

Status SetRolesOf(std::vector<Config::Access::Subject>& items, Texts texts) {
  return ReadRolesOf(items, texts);
}

Status SetRolesOf(std::vector<Config::Oidc::Mapping>& items, Texts texts) {
  return ReadRolesOf(items, texts);
}

Status SetOpen(std::vector<access::Operation>& open, Texts texts) {
  open.clear();
  for (const std::string& text : texts) {
    if (text == "none" && texts.size() == 1) return {};
    const auto operation = access::ParseOpenable(text);
    if (!operation) {
      return Expected("none, or some of check, give_back, slots, slots_change and send", text,
                      kOpenable);
    }
    open.push_back(*operation);
  }
  return {};
}

}  // namespace weir::config
