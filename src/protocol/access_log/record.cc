#include "protocol/access_log/record.h"

#include <simdjson.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/instant.h"
#include "base/number.h"

namespace weir::access_log {
namespace {

constexpr std::array<std::pair<std::string_view, Format>, 4> kFormats = {{
    {"auto", Format::kAuto},
    {"combined", Format::kCombined},
    {"json", Format::kJson},
    {"envoy", Format::kEnvoy},
}};

/// Takes pieces off the front of a line.
class Cursor {
 public:
  explicit Cursor(std::string_view line) : rest_(line) {}

  /// Up to the next `end`, which is skipped; nothing if there is none.
  std::optional<std::string_view> Until(char end) {
    const std::size_t at = rest_.find(end);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view piece = rest_.substr(0, at);
    rest_.remove_prefix(at + 1);
    return piece;
  }

  bool Take(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// A quoted text, unchanged; \" does not end it.
  std::optional<std::string_view> Quoted() {
    if (!Take('"')) return std::nullopt;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        const std::string_view text = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        return text;
      }
    }
    return std::nullopt;
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::string_view Known(std::string_view text) { return text == "-" ? std::string_view() : text; }

/// "GET /path?query HTTP/1.1" → method and route.
bool ReadRequest(std::string_view text, Record& record) {
  const std::size_t first = text.find(' ');
  const std::size_t last = text.rfind(' ');
  if (first == std::string_view::npos || first == 0 || last <= first + 1) return false;
  record.method = text.substr(0, first);
  const std::string_view target = text.substr(first + 1, last - first - 1);
  record.route = target.substr(0, target.find('?'));
  return !record.route.empty();
}

/// "10/Oct/2000:13:55:36 -0700"
std::optional<Nanos> ReadClfTime(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  constexpr std::int64_t kLastSecond = 9'214'646'399;  // what nanoseconds reach
  if (text.size() != 26 || text[2] != '/' || text[6] != '/' || text[11] != ':' || text[14] != ':' ||
      text[17] != ':' || text[20] != ' ' || (text[21] != '+' && text[21] != '-')) {
    return std::nullopt;
  }
  bool good = true;
  const auto number = [&](std::size_t at, std::size_t digits) {
    const auto read = ParseNumber<unsigned>(text.substr(at, digits));
    good = good && read;
    return static_cast<int>(read.value_or(0));
  };
  const std::size_t month = kMonths.find(text.substr(3, 3));
  CivilTime time{.year = number(7, 4),
                 .month = static_cast<int>(month / 3) + 1,
                 .day = number(0, 2),
                 .hour = number(12, 2),
                 .minute = number(15, 2),
                 .second = number(18, 2)};
  time.zone_minutes = (number(22, 2) * 60 + number(24, 2)) * (text[21] == '-' ? -1 : 1);
  if (!good || month >= kMonths.size() || month % 3 != 0) return std::nullopt;
  const std::optional<std::int64_t> seconds = SecondsOf(time);
  if (!seconds || *seconds > kLastSecond) return std::nullopt;
  return *seconds * 1'000'000'000;
}

/// ip ident user [time] "request" status size …
std::optional<Record> ParseCombined(std::string_view line) {
  Cursor in(line);
  Record record;
  const auto ip = in.Until(' ');
  const auto ident = in.Until(' ');
  if (!ip || ip->empty() || !ident) return std::nullopt;
  record.ip = *ip;
  // A user's name may contain spaces; the time begins with the first bracket after it.
  const auto user = in.Until('[');
  if (!user || user->size() < 2 || user->back() != ' ') return std::nullopt;
  record.user = Known(user->substr(0, user->size() - 1));
  const auto time = in.Until(']');
  const auto at = time ? ReadClfTime(*time) : std::nullopt;
  if (!at || !in.Take(' ')) return std::nullopt;
  record.at = *at;
  const auto request = in.Quoted();
  if (!request || !ReadRequest(*request, record) || !in.Take(' ')) return std::nullopt;
  return record;
}

/// [time] "request" status flags received sent duration upstream "forwarded-for" "agent" "id"
/// "host" …; Istio's has more before the numbers: … status flags details termination "failure"
/// received …
std::optional<Record> ParseEnvoy(std::string_view line) {
  Cursor in(line);
  Record record;
  if (!in.Take('[')) return std::nullopt;
  const auto time = in.Until(']');
  const auto at = time ? ParseInstant(*time) : std::nullopt;
  if (!at || !in.Take(' ')) return std::nullopt;
  record.at = *at;
  const auto request = in.Quoted();
  if (!request || !ReadRequest(*request, record) || !in.Take(' ')) return std::nullopt;
  // Numbers and flags up to the quoted texts.
  if (!in.Until('"')) return std::nullopt;
  auto forwarded = in.Until('"');
  if (forwarded && in.rest().starts_with(' ') && !in.rest().starts_with(" \"")) {
    forwarded = in.Until('"') ? in.Until('"') : std::nullopt;
  }
  if (!forwarded) return std::nullopt;
  // What Envoy saw itself is the entry that it added last.
  std::string_view ip = *forwarded;
  if (const std::size_t comma = ip.rfind(','); comma != std::string_view::npos) {
    ip.remove_prefix(comma + 1);
  }
  while (ip.starts_with(' ')) ip.remove_prefix(1);
  record.ip = Known(ip);
  for (int skipped = 0; skipped < 2; ++skipped) {
    if (!in.Take(' ') || !in.Quoted()) return record;
  }
  if (in.Take(' ')) record.host = Known(in.Quoted().value_or(""));
  return record;
}

/// What a JSON field means, by the names that servers give it.
enum class Meaning : std::uint8_t { kNone, kTime, kIp, kUser, kMethod, kRoute, kRequest, kHost };

Meaning MeaningOf(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Meaning>, 23> kNames = {{
      {"time", Meaning::kTime},
      {"timestamp", Meaning::kTime},
      {"@timestamp", Meaning::kTime},
      {"ts", Meaning::kTime},
      {"time_iso8601", Meaning::kTime},
      {"start_time", Meaning::kTime},
      {"msec", Meaning::kTime},
      {"ip", Meaning::kIp},
      {"remote_addr", Meaning::kIp},
      {"client_ip", Meaning::kIp},
      {"remote_ip", Meaning::kIp},
      {"user", Meaning::kUser},
      {"remote_user", Meaning::kUser},
      {"method", Meaning::kMethod},
      {"request_method", Meaning::kMethod},
      {"route", Meaning::kRoute},
      {"path", Meaning::kRoute},
      {"uri", Meaning::kRoute},
      {"request_uri", Meaning::kRoute},
      {"url", Meaning::kRoute},
      {"request", Meaning::kRequest},
      {"host", Meaning::kHost},
      {"authority", Meaning::kHost},
  }};
  for (const auto& [known, meaning] : kNames) {
    if (known == name) return meaning;
  }
  return Meaning::kNone;
}

}  // namespace

/// The memory of JSON lines. Not thread-safe.
class LineParser::Json {
 public:
  std::optional<Record> Parse(std::string_view line) {
    text_.assign(line);
    text_.append(simdjson::SIMDJSON_PADDING, '\0');
    simdjson::dom::object object;
    if (parser_.parse(text_.data(), line.size(), false).get(object) != simdjson::SUCCESS) {
      return std::nullopt;
    }
    Record record;
    bool timed = false;
    for (const auto& [name, value] : object) {
      const Meaning meaning = MeaningOf(name);
      if (meaning == Meaning::kNone) continue;
      if (meaning == Meaning::kTime) {
        const auto at = ReadTime(value);
        if (!at) return std::nullopt;
        record.at = *at;
        timed = true;
        continue;
      }
      std::string_view text;
      if (value.get(text) == simdjson::SUCCESS) Set(record, meaning, text);
    }
    if (!timed || (record.ip.empty() && record.route.empty())) return std::nullopt;
    return record;
  }

 private:
  /// ISO 8601, or seconds since the epoch, or milliseconds if the number is that large.
  static std::optional<Nanos> ReadTime(simdjson::dom::element value) {
    constexpr double kLastSecond = 9e9;
    std::string_view text;
    double number = 0;
    if (value.get(text) == simdjson::SUCCESS) {
      if (const auto at = ParseInstant(text)) return at;
      const auto given = ParseFraction(text);
      if (!given) return std::nullopt;
      number = *given;
    } else if (value.get(number) != simdjson::SUCCESS) {
      return std::nullopt;
    }
    if (!(number >= 0) || number >= kLastSecond * 1000) return std::nullopt;
    return static_cast<Nanos>(std::llround(number < kLastSecond ? number * 1e6 : number * 1e3)) *
           1000;
  }

  static void Set(Record& record, Meaning meaning, std::string_view text) {
    switch (meaning) {
      case Meaning::kIp:
        record.ip = Known(text);
        break;
      case Meaning::kUser:
        record.user = Known(text);
        break;
      case Meaning::kMethod:
        record.method = text;
        break;
      case Meaning::kRoute:
        record.route = text.substr(0, text.find('?'));
        break;
      case Meaning::kRequest:
        static_cast<void>(ReadRequest(text, record));
        break;
      case Meaning::kHost:
        record.host = Known(text);
        break;
      case Meaning::kNone:
      case Meaning::kTime:
        break;
    }
  }

  std::string text_;
  simdjson::dom::parser parser_;
};

std::optional<Format> ParseFormat(std::string_view name) noexcept {
  for (const auto& [known, format] : kFormats) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::string_view FormatName(Format format) noexcept {
  return kFormats[static_cast<std::size_t>(format)].first;
}

LineParser::LineParser(Format format) : format_(format), json_(std::make_unique<Json>()) {}
LineParser::~LineParser() = default;

std::optional<Record> LineParser::Parse(std::string_view line) {
  if (line.size() > kMaxLine) return std::nullopt;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (format_ != Format::kAuto) return ParseAs(format_, line);
  for (const Format format : {Format::kJson, Format::kEnvoy, Format::kCombined}) {
    if (auto record = ParseAs(format, line)) {
      format_ = format;
      return record;
    }
  }
  return std::nullopt;
}

std::optional<Record> LineParser::ParseAs(Format format, std::string_view line) {
  switch (format) {
    case Format::kCombined:
      return ParseCombined(line);
    case Format::kEnvoy:
      return ParseEnvoy(line);
    case Format::kJson:
      return line.starts_with('{') ? json_->Parse(line) : std::nullopt;
    case Format::kAuto:
      break;
  }
  return std::nullopt;
}

}  // namespace weir::access_log
