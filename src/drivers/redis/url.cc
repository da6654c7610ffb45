#include "drivers/redis/url.h"

#include <string>
#include <utility>

#include "base/duration.h"
#include "base/number.h"
#include "base/url.h"

namespace weir::redis {
namespace {

Error Invalid(std::string_view what) {
  return {Code::kInvalidArgument,
          "redis URL: " + std::string(what) +
              "; expected redis://user:password@host:port/database, rediss://… for TLS or "
              "redis+cluster://host1:port1,host2:port2"};
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

Status ReadEndpoints(std::vector<UrlHost> hosts, Address& address) {
  if (hosts.empty()) return Invalid("the host is missing");
  if (hosts.size() > 1 && !address.cluster) return Invalid("several hosts need redis+cluster://");
  address.endpoints.clear();
  for (UrlHost& host : hosts) {
    Endpoint& endpoint = address.endpoints.emplace_back();
    endpoint.host = std::move(host.name);
    if (host.port != 0) endpoint.port = host.port;
  }
  return {};
}

Status ReadDatabase(std::string_view path, Address& address) {
  if (path.empty()) return {};
  const auto number = ParseNumber<std::uint32_t>(path);
  if (!number) return Invalid("the database must be a number");
  if (address.cluster && *number != 0) return Invalid("a cluster has only database 0");
  address.database = *number;
  return {};
}

Status ReadGather(const std::string& value, Address& address) {
  if (value == "0") return {};
  const auto time = ParseDuration(value);
  if (!time.ok() || *time > kLongestGather) {
    return Invalid("gather must be 0 or a time of at most 10ms, such as 1ms; it is " + value);
  }
  address.gather = *time;
  return {};
}

Status ReadOption(std::string_view name, std::string& value, Address& address) {
  TlsOptions& tls = address.tls;
  if (value.empty()) return Invalid("an option after ? needs a value: name=value");
  if (name == "tag") {
    if (!address.cluster) return Invalid("the option tag is for redis+cluster://");
    address.tag = std::move(value);
    return {};
  }
  if (name == "spread") {
    if (!address.cluster) return Invalid("the option spread is for redis+cluster://");
    if (value != "on" && value != "off") return Invalid("spread must be on or off");
    address.spread = value == "on";
    return {};
  }
  if (name == "gather") return ReadGather(value, address);
  if (!tls.on && name.starts_with("tls")) {
    return Invalid("options that begin with tls are for rediss://");
  }
  if (!tls.on) {
    return Invalid("unknown option '" + std::string(name) +
                   "'; options are tag, spread and gather");
  }
  // Without the prefix, and verify=on|off: as they were called at first.
  if (name == "tls" && (value == "required" || value == "insecure-no-verify")) {
    tls.verify = value == "required";
  } else if (name == "tls_ca" || name == "ca") {
    tls.ca_file = std::move(value);
  } else if (name == "tls_cert" || name == "cert") {
    tls.certificate_file = std::move(value);
  } else if (name == "tls_key" || name == "key") {
    tls.key_file = std::move(value);
  } else if (name == "verify" && (value == "on" || value == "off")) {
    tls.verify = value == "on";
  } else {
    return Invalid(
        "options are tag, spread, gather, tls_ca, tls_cert, tls_key and "
        "tls=required|insecure-no-verify");
  }
  return {};
}

}  // namespace

Result<Address> ParseUrl(std::string_view text) {
  Result<Url> url = weir::ParseUrl(text);
  if (!url.ok()) return Invalid(url.error().message);
  Address address;
  if (Status read = ReadScheme(url->scheme, address); !read.ok()) return read.error();
  address.user = std::move(url->user);
  address.password = std::move(url->password);
  if (Status read = ReadEndpoints(std::move(url->hosts), address); !read.ok()) return read.error();
  if (Status read = ReadDatabase(url->path, address); !read.ok()) return read.error();
  for (auto& [name, value] : url->options) {
    if (Status read = ReadOption(name, value, address); !read.ok()) return read.error();
  }
  return address;
}

}  // namespace weir::redis
