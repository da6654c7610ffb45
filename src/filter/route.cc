#include "filter/route.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "base/hex.h"
#include "base/percent.h"
#include "base/utf8.h"

namespace weir::filter {

namespace {

constexpr const char* kManyReadings = "servers interpret this path differently; send a plain path";

/// Properties of each byte of a path.
constexpr std::uint8_t kPlain = 1;  // itself in every spelling and to every server, `/` included
constexpr std::uint8_t kBare = 2;   // not escaped in the normalized spelling

constexpr std::array<std::uint8_t, 256> MakeClasses() noexcept {
  std::array<std::uint8_t, 256> classes{};
  for (std::size_t c = 'a'; c <= 'z'; ++c) classes[c] = kPlain | kBare;
  for (std::size_t c = '0'; c <= '9'; ++c) classes[c] = kPlain | kBare;
  for (std::size_t c = 'A'; c <= 'Z'; ++c) classes[c] = kBare;
  for (const char c : std::string_view("-._~!$&'()*+,=:@/")) {
    classes[static_cast<std::uint8_t>(c)] = kPlain | kBare;
  }
  classes[';'] = kBare;
  return classes;
}

constexpr std::array<std::uint8_t, 256> kClasses = MakeClasses();

bool Is(char c, std::uint8_t what) noexcept {
  return (kClasses[static_cast<std::uint8_t>(c)] & what) != 0;
}

/// Whether every server gives the path the same name.
bool IsPlainPath(std::string_view path) noexcept {
  if (path.size() > 1 && path.back() == '/') return false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (!Is(path[i], kPlain)) return false;
    if (path[i] == '/' && i + 1 < path.size() && (path[i + 1] == '/' || path[i + 1] == '.')) {
      return false;
    }
  }
  return true;
}

bool IsEscape(std::string_view text, std::size_t at) noexcept {
  return text[at] == '%' && at + 2 < text.size() && HexDigit(text[at + 1]) >= 0 &&
         HexDigit(text[at + 2]) >= 0;
}

/// Why a byte is refused anywhere in a path; null if it is not.
const char* Forbidden(char byte) noexcept {
  const auto value = static_cast<std::uint8_t>(byte);
  if (value < 0x20 || value == 0x7f) return "the path contains a control character";
  if (byte == '\\') return "the path contains a backslash";
  return nullptr;
}

/// Writes `path` in the normalized spelling: bytes that may be literal are, all others are %XX.
const char* Normalize(std::string_view path, std::string& out) {
  std::string decoded;
  for (std::size_t i = 0; i < path.size(); ++i) {
    char byte = path[i];
    const bool escaped = byte == '%';
    if (escaped) {
      if (!IsEscape(path, i)) return "the path contains an invalid % escape";
      byte = static_cast<char>(HexDigit(path[i + 1]) * 16 + HexDigit(path[i + 2]));
      i += 2;
    }
    if (const char* why = Forbidden(byte)) return why;
    decoded += byte;
    // Escaped separators may be data: they stay distinct from those that were not escaped.
    const bool separator = byte == '/' || byte == ';';
    if (Is(byte, kBare) && !(escaped && separator)) {
      out += byte;
    } else {
      AppendPercent(out, byte);
    }
  }
  for (std::size_t i = 0; i < decoded.size();) {
    if (IsEscape(decoded, i)) return "the path is percent-encoded twice";
    const std::size_t length = Utf8SequenceLength(std::string_view(decoded).substr(i));
    if (length == 0) return "the path is not UTF-8";
    i += length;
  }
  return nullptr;
}

/// The next position at or after `from` of any of `what`; the end if there is none.
std::size_t FindAny(std::string_view path, std::size_t from,
                    std::initializer_list<std::string_view> what) noexcept {
  std::size_t first = path.size();
  for (const std::string_view one : what) first = std::min(first, path.find(one, from));
  return first;
}

/// How long what stands at `at` is, if a segment ends there for some server; 0 if none does.
std::size_t SeparatorAt(std::string_view path, std::size_t at) noexcept {
  if (path[at] == '/' || path[at] == ';') return 1;
  if (path[at] != '%') return 0;
  const std::string_view escape = path.substr(at, 3);
  return escape == "%2F" || escape == "%3B" || escape == "%3F" || escape == "%23" ? 3 : 0;
}

/// Whether any server could read a segment as `.` or `..`. Clients resolve those before they send.
bool HasDotSegment(std::string_view path) noexcept {
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t separator = at == path.size() ? 1 : SeparatorAt(path, at);
    if (separator == 0) {
      ++at;
      continue;
    }
    const std::string_view segment = path.substr(begin, at - begin);
    const bool starts_here = begin == 0 || path[begin - 1] == '/' || path[begin - 1] == 'F';
    if (starts_here && (segment == "." || segment == "..")) return true;
    begin = at += separator;
  }
  return false;
}

std::string Replaced(std::string_view path, std::string_view what, std::string_view by) {
  std::string out;
  while (true) {
    const std::size_t at = path.find(what);
    out += path.substr(0, at);
    if (at == path.npos) return out;
    out += by;
    path.remove_prefix(at + what.size());
  }
}

std::string Merged(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c != '/' || out.empty() || out.back() != '/') out += c;
  }
  return out;
}

/// Each segment up to its `mark`.
std::string WithoutParameters(std::string_view path, std::string_view mark) {
  std::string out;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(0, end);
    out += segment.substr(0, segment.find(mark));
    path.remove_prefix(end);
  }
  return out;
}

/// `//host/path` as a relative reference: the path.
std::string_view WithoutAuthority(std::string_view path) noexcept {
  const std::size_t host = std::min(path.find_first_not_of('/'), path.size());
  const std::size_t rest = path.find('/', host);
  return rest == path.npos ? std::string_view("/") : path.substr(rest);
}

/// How servers that do not use the path unchanged read it. At most two ways are listed; null if
/// they cannot be determined.
struct Ambiguity {
  std::string first;
  std::string second;
};
std::optional<Ambiguity> ResolveAmbiguity(std::string_view path) {
  const auto has = [path](std::string_view what) { return path.find(what) != path.npos; };
  const bool leading = path.starts_with("//");
  const std::size_t inner_from = leading ? std::min(path.find_first_not_of('/'), path.size()) : 0;
  const bool inner = path.find("//", inner_from) != path.npos;
  const bool all_slashes = path.find_first_not_of('/') == path.npos;
  const int kinds = (leading ? 1 : 0) + (inner ? 1 : 0) + (has("%2F") ? 1 : 0) +
                    (has(";") ? 1 : 0) + (has("%3B") ? 1 : 0) + (has("%3F") ? 1 : 0) +
                    (has("%23") ? 1 : 0);
  if (kinds == 0) return Ambiguity{};
  // Servers that read one kind in one way may read the other kind in the other way.
  if (kinds > 1) return std::nullopt;
  Ambiguity found;
  if (leading || inner) {
    found.first = Merged(path);
    if (leading && !all_slashes) found.second = WithoutAuthority(path);
    return found;
  }
  if (has("%2F")) {
    found.first = Replaced(path, "%2F", "/");
  } else if (has(";")) {
    found.first = WithoutParameters(path, ";");
  } else if (has("%3B")) {
    found.first = WithoutParameters(path, "%3B");
  } else {
    found.first = path.substr(0, FindAny(path, 0, {"%3F", "%23"}));
  }
  if (found.first.find("//") != std::string::npos) return std::nullopt;
  return found;
}

/// Converts upper case to lower case, except in escapes.
bool ToLower(std::string& path) noexcept {
  bool changed = false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '%') {
      i += 2;
    } else if (path[i] >= 'A' && path[i] <= 'Z') {
      path[i] = static_cast<char>(path[i] + ('a' - 'A'));
      changed = true;
    }
  }
  return changed;
}

/// The path of a target in absolute form; nothing if it has another form.
std::optional<std::string_view> PathOfUrl(std::string_view target) noexcept {
  for (const std::string_view scheme : {"http://", "https://"}) {
    // Every character of a scheme has this bit.
    const auto same = [](char a, char b) { return (a | ('a' - 'A')) == b; };
    if (target.size() <= scheme.size() || !std::equal(scheme.begin(), scheme.end(), target.begin(),
                                                      [&](char s, char t) { return same(t, s); })) {
      continue;
    }
    const std::size_t end = target.find_first_of("/?#", scheme.size());
    if (end == scheme.size() || (end != target.npos && target[end] == '#')) return std::nullopt;
    if (end == target.npos || target[end] != '/') return std::string_view("/");
    return target.substr(end);
  }
  return std::nullopt;
}

}  // namespace

const char* Routes::Read(std::string_view target) {
  count_ = 0;
  if (target.empty()) return nullptr;
  if (target == "*") {
    names_[count_++] = target;
    return nullptr;
  }
  if (target.front() != '/') {
    const auto path = PathOfUrl(target);
    if (!path) return "the target is neither a path nor an http URL";
    target = *path;
  }
  const std::size_t end = target.find_first_of("?#");
  if (end != target.npos && target[end] == '#') return "the target contains a fragment";
  const std::string_view path = target.substr(0, end);
  if (IsPlainPath(path)) {
    names_[count_++] = path;
    return nullptr;
  }
  return ReadPath(path);
}

const char* Routes::ReadPath(std::string_view path) {
  std::string normal;
  if (const char* why = Normalize(path, normal)) return why;
  if (HasDotSegment(normal)) return "the path contains a . or .. segment";
  const auto other = ResolveAmbiguity(normal);
  if (!other) return kManyReadings;
  AddName(normal);
  if (!other->first.empty()) AddName(other->first);
  if (!other->second.empty()) AddName(other->second);
  return nullptr;
}

/// Adds the name in every server's form: some distinguish `/pay/` or `/Pay` from `/pay`.
void Routes::AddName(std::string_view name) {
  const bool slash = name.size() > 1 && name.back() == '/';
  for (const std::string_view one : {name, slash ? name.substr(0, name.size() - 1) : name}) {
    Add(one);
    std::string lower(one);
    if (ToLower(lower)) Add(lower);
  }
}

void Routes::Add(std::string_view name) {
  const auto known = names();
  if (count_ == kMax || std::find(known.begin(), known.end(), name) != known.end()) return;
  texts_[count_] = name;
  names_[count_] = texts_[count_];
  ++count_;
}

}  // namespace weir::filter
