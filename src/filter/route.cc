#include "filter/route.h"

#include <algorithm>

#include "base/percent.h"

namespace weir::filter {

namespace {

bool Unreserved(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

bool IsNormal(std::string_view path) noexcept {
  if (path.size() > 1 && path.back() == '/') return false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '%') return false;
    if (path[i] == '/' && i + 1 < path.size() && (path[i + 1] == '/' || path[i + 1] == '.')) {
      return false;
    }
  }
  return true;
}

/// Decodes %41 to A; other escapes stay, with capital digits, since %2F is not a slash.
void DecodeUnreserved(std::string_view path, std::string& out) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (std::size_t i = 0; i < path.size(); ++i) {
    const int high = path[i] == '%' && i + 2 < path.size() ? HexDigit(path[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(path[i + 2]) : -1;
    if (low < 0) {
      out += path[i];
      continue;
    }
    const char decoded = static_cast<char>(high * 16 + low);
    if (Unreserved(decoded)) {
      out += decoded;
    } else {
      out += '%';
      out += kDigits[static_cast<std::size_t>(high)];
      out += kDigits[static_cast<std::size_t>(low)];
    }
    i += 2;
  }
}

/// Resolves segments in place: what is written never overtakes what is read.
void ResolveSegments(std::string& path) {
  std::size_t written = 0;
  std::size_t read = 0;
  while (read < path.size()) {
    std::size_t end = path.find('/', read);
    if (end == std::string::npos) end = path.size();
    const std::string_view segment(path.data() + read, end - read);
    if (segment == "..") {
      const auto parent = path.rfind('/', written == 0 ? 0 : written - 1);
      written = written == 0 || parent == std::string::npos ? 0 : parent;
    } else if (!segment.empty() && segment != ".") {
      const std::size_t length = segment.size();
      path[written++] = '/';
      std::copy_n(path.begin() + static_cast<std::ptrdiff_t>(read), length,
                  path.begin() + static_cast<std::ptrdiff_t>(written));
      written += length;
    }
    read = end + 1;
  }
  path.resize(written);
  if (path.empty()) path += '/';
}

}  // namespace

std::string_view NormalRoute(std::string_view target, std::string& scratch) {
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  if (!path.starts_with('/') || IsNormal(path)) return path;
  scratch.clear();
  DecodeUnreserved(path, scratch);
  ResolveSegments(scratch);
  return scratch;
}

}  // namespace weir::filter
