#include "protocol/http/head.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/number.h"
#include "filter/field_names.h"

namespace weir::http {
namespace {

/// What each byte may be part of.
constexpr std::uint8_t kToken = 1;   // field names, methods
constexpr std::uint8_t kTarget = 2;  // printable ASCII without space
constexpr std::uint8_t kValue = 4;   // anything but control characters, tab excepted
constexpr std::uint8_t kHost = 8;    // a name or address with its port (RFC 3986)

constexpr std::array<std::uint8_t, 256> MakeClasses() noexcept {
  std::array<std::uint8_t, 256> classes{};
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (c >= 0x20 && c != 0x7f) classes[c] |= kValue;
    if (c > 0x20 && c < 0x7f) classes[c] |= kTarget;
    const bool alphanumeric =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (alphanumeric) classes[c] |= kToken | kHost;
  }
  classes['\t'] |= kValue;
  const auto add = [&classes](std::string_view characters, std::uint8_t what) {
    for (const char c : characters) classes[static_cast<std::uint8_t>(c)] |= what;
  };
  add("!#$%&'*+-.^_`|~", kToken);
  add("-._~!$&'()*+,;=%:[]", kHost);
  return classes;
}

constexpr std::array<std::uint8_t, 256> kClasses = MakeClasses();

bool All(std::string_view text, std::uint8_t what) noexcept {
  std::uint8_t common = what;
  for (const char c : text) common &= kClasses[static_cast<std::uint8_t>(c)];
  return common != 0;
}

struct Known {
  std::string_view name;
  FieldId id;
};

constexpr std::array kKnown = {
    Known{"te", FieldId::kTe},
    Known{"via", FieldId::kVia},
    Known{"host", FieldId::kHost},
    Known{"accept", FieldId::kAccept},
    Known{"expect", FieldId::kExpect},
    Known{"upgrade", FieldId::kUpgrade},
    Known{"connection", FieldId::kConnection},
    Known{"keep-alive", FieldId::kKeepAlive},
    Known{"content-length", FieldId::kContentLength},
    Known{"x-forwarded-for", FieldId::kForwardedFor},
    Known{"proxy-connection", FieldId::kProxyConnection},
    Known{"x-forwarded-host", FieldId::kForwardedHost},
    Known{"transfer-encoding", FieldId::kTransferEncoding},
    Known{"x-forwarded-proto", FieldId::kForwardedProto},
    Known{"proxy-authorization", FieldId::kProxyAuthorization},
};

/// The range of kKnown with names of each length, so that most names are quickly found unknown.
constexpr auto kByLength = [] {
  std::array<std::array<std::uint8_t, 2>, 20> ranges{};
  for (std::size_t i = 0; i < kKnown.size(); ++i) {
    auto& range = ranges[kKnown[i].name.size()];
    if (range[1] == 0) range[0] = static_cast<std::uint8_t>(i);
    range[1] = static_cast<std::uint8_t>(i + 1);
  }
  return ranges;
}();

/// Sets `disguised` if some server would take the field for a known one that it is not.
FieldId Classify(std::string_view name, bool& disguised) noexcept {
  if (name.size() >= kByLength.size()) return FieldId::kOther;
  for (std::size_t i = kByLength[name.size()][0]; i < kByLength[name.size()][1]; ++i) {
    if (!filter::ReadsAsField(name, kKnown[i].name)) continue;
    if (EqualsIgnoringCase(name, kKnown[i].name)) return kKnown[i].id;
    disguised = true;
  }
  return FieldId::kOther;
}

HeadResult Wrong(int status, const char* why) noexcept { return {0, status, why}; }

/// Lines end in CRLF; the caller has made sure that the head ends in an empty one.
class Lines {
 public:
  explicit Lines(std::string_view rest) noexcept : rest_(rest) {}

  /// The next line with its CRLF; without it if the line ends in a bare LF or contains a CR, which
  /// is an error.
  std::string_view Next() noexcept {
    const auto end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end == rest_.npos ? end : end + 1);
    rest_.remove_prefix(line.size());
    return line;
  }

 private:
  std::string_view rest_;
};

bool EndsInCrlf(std::string_view line) noexcept {
  return line.size() >= 2 && line[line.size() - 2] == '\r' && line.back() == '\n';
}

/// Records what the field means for this hop. Null, or why it is wrong.
const char* Interpret(const Field& field, Head& head, bool& keep_alive, std::size_t& nominated) {
  switch (field.id) {
    case FieldId::kContentLength: {
      if (head.has_length) return "more than one Content-Length";
      head.has_length = true;
      const auto length = ParseNumber<std::uint64_t>(field.value);
      head.length = length.value_or(0);
      // Half the range: sums of lengths and of bytes read never overflow.
      return length && *length >> 63U == 0 ? nullptr : "Content-Length is not a number";
    }
    case FieldId::kTransferEncoding:
      if (head.chunked) return "more than one Transfer-Encoding";
      head.chunked = true;
      return EqualsIgnoringCase(field.value, "chunked") ? nullptr
                                                        : "Transfer-Encoding is not chunked";
    case FieldId::kConnection: {
      ForEachElement(field.value, [&](std::string_view element) {
        if (EqualsIgnoringCase(element, "close")) {
          head.close = true;
        } else if (EqualsIgnoringCase(element, "keep-alive")) {
          keep_alive = true;
        } else if (EqualsIgnoringCase(element, "upgrade")) {
          head.upgrade = true;
        } else {
          head.nominates = true;
        }
      });
      // Each field of the message is compared with each of them; even an empty one takes time.
      nominated += 1 + static_cast<std::size_t>(std::ranges::count(field.value, ','));
      return nominated > kMaxNominated ? "Connection names too many fields" : nullptr;
    }
    default:
      return nullptr;
  }
}

/// Parses the fields in `lines`, up to the empty line.
HeadResult ParseFields(Lines lines, const HeadLimits& limits, Head& head) {
  head.fields.clear();
  head.close = head.upgrade = head.nominates = head.has_length = head.chunked = false;
  head.disguised = false;
  bool keep_alive = false;
  std::size_t nominated = 0;
  while (true) {
    Field field;
    field.line = lines.Next();
    if (!EndsInCrlf(field.line)) return Wrong(400, "a line does not end in CRLF");
    if (field.line.size() == 2) break;
    if (head.fields.size() == limits.fields) return Wrong(431, "too many header fields");
    const auto colon = field.line.find(':');
    if (colon == std::string_view::npos) return Wrong(400, "a header field has no colon");
    field.name = field.line.substr(0, colon);
    // This also refuses folded lines and space before the colon.
    if (field.name.empty() || !All(field.name, kToken)) {
      return Wrong(400, "the name of a header field is not a token");
    }
    field.value = Trim(field.line.substr(colon + 1, field.line.size() - colon - 3));
    if (!All(field.value, kValue)) return Wrong(400, "a header field contains a control character");
    field.id = Classify(field.name, head.disguised);
    if (const char* why = Interpret(field, head, keep_alive, nominated)) return Wrong(400, why);
    head.fields.push_back(field);
  }
  if (head.chunked && head.has_length) {
    return Wrong(400, "both Content-Length and Transfer-Encoding");
  }
  if (head.chunked && head.minor_version == 0) {
    return Wrong(400, "Transfer-Encoding in HTTP/1.0");
  }
  if (head.minor_version == 0 && !keep_alive) head.close = true;
  head.upgrade = head.upgrade && head.Find(FieldId::kUpgrade) != nullptr;
  return {};
}

/// `HTTP/1.0` or `HTTP/1.1`; -1 if it is neither.
int MinorVersion(std::string_view version) noexcept {
  if (version == "HTTP/1.1") return 1;
  return version == "HTTP/1.0" ? 0 : -1;
}

HeadResult ParseRequestLine(std::string_view line, const HeadLimits& limits, RequestHead& head) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return Wrong(400, "bad request line");
  head.method = line.substr(0, first);
  head.target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (head.method.empty() || !All(head.method, kToken)) return Wrong(400, "bad method");
  if (head.target.size() > limits.target_bytes) return Wrong(414, "the target is too long");
  if (head.target.empty() || !All(head.target, kTarget)) return Wrong(400, "bad target");
  head.minor_version = MinorVersion(version);
  if (head.minor_version < 0) {
    return version.starts_with("HTTP/") ? Wrong(505, "use HTTP/1.1 or HTTP/1.0")
                                        : Wrong(400, "bad request line");
  }
  if (head.method == "CONNECT") return Wrong(501, "CONNECT is not served here");
  return {};
}

/// Finds the authority and converts the target to origin-form.
HeadResult Resolve(RequestHead& head, const HeadLimits& limits) {
  const Field* host = head.Find(FieldId::kHost);
  if (head.Find("host", 1) != nullptr) return Wrong(400, "more than one Host");
  if (host == nullptr && head.minor_version == 1 && limits.host_required) {
    return Wrong(400, "Host is missing");
  }
  head.authority = host != nullptr ? host->value : std::string_view();
  // One with a path in it would become part of the path where URLs are built from both.
  if (!head.authority.empty() && !All(head.authority, kHost)) return Wrong(400, "bad Host");
  if (head.target.front() == '/' || head.target == "*") return {};

  const auto scheme = head.target.find("://");
  if (scheme == std::string_view::npos) return Wrong(400, "bad target");
  const std::string_view name = head.target.substr(0, scheme);
  if (!EqualsIgnoringCase(name, "http") && !EqualsIgnoringCase(name, "https"))
    return Wrong(400, "bad target");
  const auto path = head.target.find('/', scheme + 3);
  head.authority =
      head.target.substr(scheme + 3, path == head.target.npos ? path : path - scheme - 3);
  if (head.authority.empty() || !All(head.authority, kHost)) return Wrong(400, "bad target");
  // "http://host" means the root: its second slash serves as the path, and is in the buffer.
  head.target =
      path == std::string_view::npos ? head.target.substr(scheme + 2, 1) : head.target.substr(path);
  return {};
}

/// The size of the head, or 0 if its end has not arrived; it is not in the first `searched` bytes.
std::size_t FindEnd(std::string_view bytes, std::size_t searched = 0) noexcept {
  const auto end = bytes.find("\r\n\r\n", searched - std::min<std::size_t>(searched, 3));
  return end == std::string_view::npos ? 0 : end + 4;
}

HeadResult Incomplete(std::string_view bytes, const HeadLimits& limits, int too_large) noexcept {
  if (bytes.size() >= limits.bytes) return Wrong(too_large, "the header section is too large");
  return {};
}

}  // namespace

const Field* Head::Find(std::string_view name, std::size_t nth) const noexcept {
  for (const Field& field : fields) {
    if (EqualsIgnoringCase(field.name, name) && nth-- == 0) return &field;
  }
  return nullptr;
}

const Field* Head::Find(FieldId id) const noexcept {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [id](const Field& field) { return field.id == id; });
  return found == fields.end() ? nullptr : &*found;
}

bool Head::Nominates(std::string_view name) const noexcept {
  if (!nominates) return false;
  bool named = false;
  for (const Field& field : fields) {
    if (field.id != FieldId::kConnection) continue;
    ForEachElement(field.value,
                   [&](std::string_view element) { named |= EqualsIgnoringCase(element, name); });
  }
  return named;
}

Framing RequestHead::framing() const noexcept {
  if (chunked) return {Framing::Kind::kChunked, 0};
  if (has_length && length > 0) return {Framing::Kind::kLength, length};
  return {};
}

bool RequestHead::idempotent() const noexcept {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE" ||
         method == "PUT" || method == "DELETE";
}

Framing ResponseHead::framing(bool to_head) const noexcept {
  if (to_head || status == 204 || status == 304 || status == 101) return {};
  if (chunked) return {Framing::Kind::kChunked, 0};
  if (has_length) {
    return {length > 0 ? Framing::Kind::kLength : Framing::Kind::kNone, length};
  }
  return {Framing::Kind::kUntilClose, 0};
}

HeadResult ParseRequestHead(std::string_view bytes, const HeadLimits& limits, RequestHead& head) {
  std::size_t skipped = 0;
  while (bytes.substr(skipped).starts_with("\r\n")) skipped += 2;
  if (skipped > 8) return Wrong(400, "empty lines instead of a request");
  const std::string_view rest = bytes.substr(skipped, limits.bytes);
  // Fail right away on what can never become a request, instead of waiting for an end that does not
  if (!rest.empty() && (kClasses[static_cast<std::uint8_t>(rest[0])] & kToken) == 0 &&
      rest[0] != '\r') {
    return Wrong(400, "bad request line");
  }
  const std::size_t size = FindEnd(rest, head.searched - std::min(head.searched, skipped));
  head.searched = size == 0 ? bytes.size() : 0;
  if (size == 0 && rest.find('\n') == rest.npos) {
    if (rest.size() > limits.target_bytes + 64) return Wrong(414, "the target is too long");
    return Incomplete(rest, limits, 431);
  }
  Lines lines(rest.substr(0, size == 0 ? rest.npos : size));
  std::string_view line = lines.Next();
  if (!EndsInCrlf(line)) return Wrong(400, "a line does not end in CRLF");
  line.remove_suffix(2);
  if (const auto result = ParseRequestLine(line, limits, head); result.failed()) return result;
  if (size == 0) return Incomplete(rest, limits, 431);
  if (const auto result = ParseFields(lines, limits, head); result.failed()) return result;
  // A server that takes Transfer_Encoding for Transfer-Encoding would see another end of the body.
  if (head.disguised) return Wrong(400, "the name of a header field has _ or another sign for -");
  if (const auto result = Resolve(head, limits); result.failed()) return result;
  const Field* expect = head.Find(FieldId::kExpect);
  head.expects_continue = expect != nullptr && EqualsIgnoringCase(expect->value, "100-continue");
  return {skipped + size, 0, ""};
}

HeadResult ParseResponseHead(std::string_view bytes, const HeadLimits& limits, ResponseHead& head) {
  const std::size_t size = FindEnd(bytes.substr(0, limits.bytes));
  // Reported before its end arrives, since it never would.
  if (bytes.find('\n') < bytes.find("\r\n")) return Wrong(502, "a line does not end in CRLF");
  if (size == 0) return Incomplete(bytes, limits, 502);
  Lines lines(bytes.substr(0, size));
  const std::string_view line = lines.Next().substr(0, bytes.find("\r\n"));
  head.minor_version = MinorVersion(line.substr(0, 8));
  if (head.minor_version < 0 || line.size() < 12 || line[8] != ' ' || !All(line, kValue)) {
    return Wrong(502, "bad status line");
  }
  head.status_line = line.substr(9);
  head.status = ParseNumber<int>(line.substr(9, 3)).value_or(0);
  const bool ended = line.size() == 12 || line[12] == ' ';
  if (head.status < 100 || !ended) return Wrong(502, "bad status line");
  if (auto result = ParseFields(lines, limits, head); result.failed()) {
    result.error_status = 502;
    return result;
  }
  return {size, 0, ""};
}

}  // namespace weir::http
