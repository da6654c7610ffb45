#include "drivers/redis/url.h"

#include <charconv>
#include <optional>
#include <utility>

#include "base/percent.h"

namespace weir::redis {
namespace {

constexpr std::size_t kMaxUrl = 4096;

Error Invalid(std::string_view what) {
  return {Code::kInvalidArgument,
          "redis URL: " + std::string(what) +
              "; it reads redis://user:password@host:port/database, rediss://… for TLS or "
              "redis+cluster://host1:port1,host2:port2"};
}

/// The part before the first `mark`, which is taken off `rest` with it; nothing if there is none.
std::optional<std::string_view> TakeUpTo(std::string_view& rest, std::string_view mark) {
  const std::size_t at = rest.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at + mark.size());
  return part;
}

template <typename Number>
bool ReadNumber(std::string_view text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end && !text.empty();
}

Status ReadScheme(std::string_view scheme, Address& address) {
  if (scheme == "redis") return {};
  if (scheme == "rediss") {
    address.tls.on = true;
  } else if (scheme == "redis+cluster") {
    address.cluster = true;
  } else if (scheme == "rediss+cluster") {
    address.cluster = address.tls.on = true;
  } else {
    return Invalid("the scheme must be redis, rediss, redis+cluster or rediss+cluster");
  }
  return {};
}

Status ReadUser(std::string_view text, Address& address) {
  const std::size_t colon = text.find(':');
  auto user = PercentDecoded(text.substr(0, colon));
  auto password = PercentDecoded(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  if (!user || !password) return Invalid("user or password holds a % that is not followed by XX");
  address.user = std::move(*user);
  address.password = std::move(*password);
  return {};
}

Status ReadEndpoint(std::string_view text, Address& address) {
  Endpoint endpoint;
  if (text.substr(0, 1) == "[") {
    text.remove_prefix(1);
    const auto host = TakeUpTo(text, "]");
    if (!host) return Invalid("the host lacks its closing ]");
    endpoint.host = *host;
    if (!text.empty() && text[0] != ':') return Invalid("a port after ] begins with :");
  } else {
    const std::size_t colon = text.find(':');
    endpoint.host = text.substr(0, colon);
    text = colon == std::string_view::npos ? "" : text.substr(colon);
  }
  if (endpoint.host.empty()) return Invalid("the host is missing");
  if (!text.empty() && (!ReadNumber(text.substr(1), endpoint.port) || endpoint.port == 0)) {
    return Invalid("the port must be a number from 1 to 65535");
  }
  address.endpoints.push_back(std::move(endpoint));
  return {};
}

Status ReadEndpoints(std::string_view text, Address& address) {
  address.endpoints.clear();
  while (auto one = TakeUpTo(text, ",")) {
    if (Status status = ReadEndpoint(*one, address); !status.ok()) return status;
  }
  if (Status status = ReadEndpoint(text, address); !status.ok()) return status;
  if (address.endpoints.size() > 1 && !address.cluster) {
    return Invalid("several hosts need redis+cluster://");
  }
  return {};
}

Status ReadOption(std::string_view text, Address& address) {
  TlsOptions& tls = address.tls;
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  auto value = PercentDecoded(equals == std::string_view::npos ? "" : text.substr(equals + 1));
  if (!value || value->empty()) return Invalid("an option after ? reads name=value");
  if (name == "tag") {
    if (!address.cluster) return Invalid("the option tag is for redis+cluster://");
    address.tag = std::move(*value);
    return {};
  }
  if (name == "spread") {
    if (!address.cluster) return Invalid("the option spread is for redis+cluster://");
    if (*value != "on" && *value != "off") return Invalid("spread must be on or off");
    address.spread = *value == "on";
    return {};
  }
  if (!tls.on) return Invalid("options that begin with tls are for rediss://");
  // Without the prefix, and verify=on|off: as they were called at first.
  if (name == "tls" && (*value == "required" || *value == "insecure-no-verify")) {
    tls.verify = *value == "required";
  } else if (name == "tls_ca" || name == "ca") {
    tls.ca_file = std::move(*value);
  } else if (name == "tls_cert" || name == "cert") {
    tls.certificate_file = std::move(*value);
  } else if (name == "tls_key" || name == "key") {
    tls.key_file = std::move(*value);
  } else if (name == "verify" && (*value == "on" || *value == "off")) {
    tls.verify = *value == "on";
  } else {
    return Invalid(
        "options are tag, spread, tls_ca, tls_cert, tls_key and tls=required|insecure-no-verify");
  }
  return {};
}

Status ReadOptions(std::string_view text, Address& address) {
  while (auto one = TakeUpTo(text, "&")) {
    if (Status status = ReadOption(*one, address); !status.ok()) return status;
  }
  return ReadOption(text, address);
}

}  // namespace

Result<Address> ParseUrl(std::string_view url) {
  if (url.size() > kMaxUrl) return Invalid("it is too long");
  Address address;
  const auto scheme = TakeUpTo(url, "://");
  if (!scheme) return Invalid("it has no scheme");
  if (Status status = ReadScheme(*scheme, address); !status.ok()) return status.error();

  std::string_view options;
  if (const std::size_t mark = url.find('?'); mark != std::string_view::npos) {
    options = url.substr(mark + 1);
    url = url.substr(0, mark);
    if (Status status = ReadOptions(options, address); !status.ok()) return status.error();
  }
  // A password may hold an @ of its own, a host cannot.
  if (const std::size_t at = url.rfind('@'); at != std::string_view::npos) {
    if (Status status = ReadUser(url.substr(0, at), address); !status.ok()) return status.error();
    url.remove_prefix(at + 1);
  }
  if (const std::size_t slash = url.find('/'); slash != std::string_view::npos) {
    const std::string_view database = url.substr(slash + 1);
    url = url.substr(0, slash);
    if (!database.empty() && !ReadNumber(database, address.database)) {
      return Invalid("the database must be a number");
    }
    if (address.cluster && address.database != 0) return Invalid("a cluster has only database 0");
  }
  if (Status status = ReadEndpoints(url, address); !status.ok()) return status.error();
  return address;
}

}  // namespace weir::redis
