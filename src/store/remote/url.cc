#include "store/remote/url.h"

#include <string>

#include "base/url.h"

namespace weir::store::remote {
namespace {

constexpr std::uint16_t kUsualPort = 6380;

Error Invalid(std::string_view what) {
  return {Code::kInvalidArgument, "weir URL: " + std::string(what) +
                                      "; expected weir://:key@host:port, or weirs://… for TLS"};
}

}  // namespace

Result<weir::redis::Address> ParseUrl(std::string_view text) {
  const Result<Url> url = weir::ParseUrl(text);
  if (!url.ok()) return Invalid(url.error().message);
  if (url->scheme != "weir" && url->scheme != "weirs") {
    return Invalid("the scheme must be weir or weirs");
  }
  if (url->hosts.size() != 1) return Invalid("it must name one host");
  if (!url->path.empty()) return Invalid("nothing may follow the port");
  // The rest is like a Redis server's.
  const std::string_view rest = text.substr(url->scheme.size());
  Result<weir::redis::Address> address =
      weir::redis::ParseUrl((url->scheme == "weirs" ? "rediss" : "redis") + std::string(rest));
  if (!address.ok() || address->gather.count() > 0) {
    return Invalid("options are tls_ca, tls_cert, tls_key and tls, for weirs://");
  }
  if (url->hosts.front().port == 0) address->endpoints.front().port = kUsualPort;
  return address;
}

}  // namespace weir::store::remote
