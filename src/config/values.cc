#include "config/values.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/duration.h"
#include "base/nearest.h"
#include "base/number.h"
#include "base/url.h"

namespace weir::config {

using std::chrono::milliseconds;

Error Expected(std::string_view expected, std::string_view got) {
  return Error{Code::kInvalidArgument, "expected " + std::string(expected) + ", got '" +
                                           std::string(got.substr(0, 64)) + "'"};
}

Error Expected(std::string_view expected, std::string_view got,
               std::span<const std::string_view> names) {
  Error error = Expected(expected, got);
  if (const auto nearest = Nearest(got, names)) {
    error.message += "; did you mean '" + std::string(*nearest) + "'?";
  }
  return error;
}

std::string Beginning(std::string_view url) {
  const std::string_view scheme = url.substr(0, url.find(':'));
  const bool more = url.substr(scheme.size()).starts_with("://");
  return std::string(scheme) + (more ? "://…" : "");
}

Result<std::int64_t> ReadWhole(std::string_view text, std::int64_t least, std::int64_t most) {
  std::string digits(text);
  std::erase(digits, '_');
  const auto value = ParseNumber<std::int64_t>(digits, least, most);
  if (value) return *value;
  return Expected("a whole number from " + std::to_string(least) + " to " + std::to_string(most),
                  text);
}

Result<std::int64_t> ReadBytes(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t unit = 1;
  std::string_view digits = text;
  if (!digits.empty()) {
    switch (digits.back()) {
      case 'k':
      case 'K':
        unit = std::int64_t{1} << 10;
        break;
      case 'M':
        unit = std::int64_t{1} << 20;
        break;
      case 'G':
        unit = std::int64_t{1} << 30;
        break;
      default:
        break;
    }
    if (unit > 1) digits.remove_suffix(1);
  }
  const Result<std::int64_t> value = ReadWhole(digits, 0, most / unit);
  if (!value.ok() || *value * unit < least) {
    return Expected("bytes from " + std::to_string(least) + " to " + std::to_string(most) +
                        ", optionally with k, M or G",
                    text);
  }
  return *value * unit;
}

Result<milliseconds> ReadTime(std::string_view text, bool zero_allowed) {
  if (zero_allowed && (text == "off" || text == "0" || text == "0s")) return milliseconds(0);
  const Result<std::chrono::nanoseconds> duration = ParseDuration(text);
  if (!duration.ok()) return duration.error();
  const auto rounded = std::chrono::duration_cast<milliseconds>(*duration);
  if (rounded.count() == 0) return Expected("at least 1ms", text);
  return rounded;
}

Result<bool> ReadSwitch(std::string_view text) {
  if (text == "true" || text == "on" || text == "yes" || text == "1") return true;
  if (text == "false" || text == "off" || text == "no" || text == "0") return false;
  return Expected("true or false", text);
}

Result<std::size_t> ReadChoice(std::string_view text,
                               std::initializer_list<std::string_view> names) {
  std::string all;
  for (const std::string_view* name = names.begin(); name != names.end(); ++name) {
    if (*name == text) return static_cast<std::size_t>(name - names.begin());
    if (name != names.begin()) all += name + 1 == names.end() ? " or " : ", ";
    all += *name;
  }
  return Expected(all, text, std::span(names.begin(), names.size()));
}

namespace {

/// Options are checked when the URL is opened. PostgreSQL's library parses its own URLs, which may
/// name hosts in other ways; but an invalid port is invalid there, too.
Status CheckUrl(const std::string& text) {
  if (text.find("://") == std::string::npos) return {};
  const Result<Url> url = ParseUrl(text);
  if (url.ok()) return {};
  const std::string& wrong = url.error().message;
  if (text.starts_with("postgres") && !wrong.starts_with("invalid port")) return {};
  return Error{Code::kInvalidArgument, "invalid URL: " + wrong};
}

}  // namespace

Status SetUrl(std::string& target, Texts texts, std::initializer_list<std::string_view> schemes) {
  const std::string& text = texts[0];
  std::string list;
  for (const std::string_view scheme : schemes) {
    if (text.starts_with(scheme)) {
      if (Status status = CheckUrl(text); !status.ok()) return status;
      target = text;
      return {};
    }
    list += (list.empty() ? "" : ", ") + std::string(scheme);
  }
  return Expected("a URL that begins with one of " + list, Beginning(text));
}

Status SetAddress(Address& target, Texts texts) {
  std::optional<Address> address = Address::Parse(texts[0]);
  if (!address) {
    return Expected("an IP address and port such as 127.0.0.1:8080 or [::1]:8080, a port, or off",
                    texts[0]);
  }
  target = std::move(*address);
  return {};
}

Status SetStoreUrl(std::string& target, const std::string& text) {
  return SetUrl(target, {&text, 1},
                {"memory:", "redis://", "rediss://", "redis+cluster://", "rediss+cluster://",
                 "postgres://", "postgresql://", "mysql://", "mariadb://", "weir://", "weirs://"});
}

bool IsPlainName(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  const auto fits = [](char c) { return IsLetterOrDigit(c) || c == '-' || c == '_'; };
  return !text.empty() && text.size() <= kLongest && std::ranges::all_of(text, fits);
}

Status SetFieldName(std::string& target, const std::string& text) {
  if (!IsPlainName(text)) {
    return Expected("the name of a header field: 1 to 64 letters, digits, - and _", text);
  }
  target = text;
  return {};
}

}  // namespace weir::config
