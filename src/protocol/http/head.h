#pragma once

// The heads of requests and responses, for the service and for the proxy: parsed strictly, because
// what two servers read differently is how a request is smuggled past the first one.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ascii.h"

namespace weir::http {

/// The fields that we act on; the proxy passes all others on unchanged.
enum class FieldId : std::uint8_t {
  kOther,
  kAccept,
  kConnection,
  kContentLength,
  kExpect,
  kForwardedFor,
  kForwardedHost,
  kForwardedProto,
  kHost,
  kKeepAlive,
  kProxyAuthorization,
  kProxyConnection,
  kTe,
  kTransferEncoding,
  kUpgrade,
  kVia,
};

/// One line of a head. Views into the buffer that was parsed.
struct Field {
  FieldId id = FieldId::kOther;
  std::string_view name;
  std::string_view value;
  std::string_view line;  ///< all of it, with its line end
};

struct HeadLimits {
  std::size_t bytes = std::size_t{32} * 1024;
  std::size_t target_bytes = std::size_t{8} * 1024;
  std::size_t fields = 128;
  bool host_required = true;  ///< of an HTTP/1.1 request, as RFC 9112 requires
};

/// Why a method in lower case is refused: some servers serve `post` as POST, which a limit on
/// POST would not count.
inline constexpr const char* kLowerCaseMethod = "the method must be in capital letters";

/// The most elements of all Connection fields of a head.
inline constexpr std::size_t kMaxNominated = 32;

/// How a body's end is found.
struct Framing {
  enum class Kind : std::uint8_t { kNone, kLength, kChunked, kUntilClose };
  Kind kind = Kind::kNone;
  std::uint64_t length = 0;
};

/// What is common to both directions. Reused from message to message. Not thread-safe, like any
/// value.
struct Head {
  std::vector<Field> fields;
  int minor_version = 1;
  bool close = false;       ///< Connection: close, or HTTP/1.0 without keep-alive
  bool upgrade = false;     ///< Connection: upgrade, and an Upgrade field
  bool nominates = false;   ///< Connection names further fields to be removed
  bool has_length = false;  ///< Content-Length; `length` is it
  bool chunked = false;
  bool disguised = false;  ///< a name that some servers take for that of a known field
  std::uint64_t length = 0;

  /// The nth (from 0) field of this name, any case; null if there are fewer.
  const Field* Find(std::string_view name, std::size_t nth = 0) const noexcept;
  const Field* Find(FieldId id) const noexcept;
  /// Whether a Connection field names this field as one for this hop only.
  bool Nominates(std::string_view name) const noexcept;
};

struct RequestHead : Head {
  std::string_view method;
  std::string_view target;  ///< always origin-form (or `*`), even if it was sent in absolute form
  std::string_view authority;  ///< Host, or the authority of a target in absolute form
  bool expects_continue = false;
  /// This many bytes of an incomplete head do not contain its end: a head that arrives byte by byte
  /// is not searched from its beginning each time.
  std::size_t searched = 0;

  Framing framing() const noexcept;
  bool idempotent() const noexcept;
};

struct ResponseHead : Head {
  int status = 0;
  std::string_view status_line;  ///< what follows the version: `200 OK`

  /// Requires a final response or 101. A response to HEAD has no body, whatever its fields say.
  Framing framing(bool to_head) const noexcept;
};

/// Calls `visit` with each element of a comma-separated list.
template <typename Visit>
void ForEachElement(std::string_view list, Visit visit) {
  while (true) {
    const auto comma = list.find(',');
    if (const auto element = Trim(list.substr(0, comma)); !element.empty()) visit(element);
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

/// Whether the list has this element, ignoring case.
inline bool ListHas(std::string_view list, std::string_view wanted) noexcept {
  bool found = false;
  ForEachElement(list,
                 [&](std::string_view element) { found |= EqualsIgnoringCase(element, wanted); });
  return found;
}

/// The outcome of parsing.
struct HeadResult {
  std::size_t size = 0;    ///< of the head, when it is complete and valid
  int error_status = 0;    ///< what to answer if it is invalid; 0 if it is not
  const char* error = "";  ///< for people

  bool complete() const noexcept { return size != 0; }
  bool failed() const noexcept { return error_status != 0; }
};

/// Parses a head that begins at the start of `bytes`. Neither complete nor failed: call it again
/// with the same bytes and more, and the same `head`, which records where to continue looking for
/// the end. Empty lines before a request are skipped and count as part of its head.
HeadResult ParseRequestHead(std::string_view bytes, const HeadLimits& limits, RequestHead& head);
HeadResult ParseResponseHead(std::string_view bytes, const HeadLimits& limits, ResponseHead& head);

}  // namespace weir::http
