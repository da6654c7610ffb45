#include "service/auth_question.h"

#include <optional>

#include "base/ascii.h"
#include "base/ip.h"
#include "filter/client_address.h"
#include "filter/field_names.h"
#include "protocol/http/check_reader.h"
#include "protocol/http/head.h"

namespace weir::service {
namespace {

constexpr std::string_view kDoubled =
    "a header field that identifies the client or route was sent twice, or with _ or another sign "
    "for -";

}  // namespace

AuthQuestion::AuthQuestion(const http::Request& request, std::string_view remote,
                           const AuthOptions& options, Arena& arena)
    : request_(request), options_(options), arena_(arena) {
  AddIp(remote);
  AddIdentity("api_key", options.api_key_header);
  AddIdentity("user", options.user_header);
  subjects_ = count_;
  AddTarget();
}

void AuthQuestion::Fill(policy::Request& request) {
  const auto names = routes_.names();
  const std::size_t readings = names.empty() ? 1 : names.size();
  std::array<policy::Descriptor, filter::Routes::kMax> descriptors;
  for (std::size_t i = 0; i < readings; ++i) {
    std::size_t count = count_;
    if (!names.empty()) {
      entries_[count++] = {"route", arena_.Copy(names[i].substr(0, http::kMaxValueBytes))};
    }
    descriptors[i] = arena_.Copy(std::span<const policy::Entry>(entries_.data(), count));
  }
  request.descriptors =
      arena_.Copy(std::span<const policy::Descriptor>(descriptors.data(), readings));
  request.subjects = descriptors[0].first(subjects_);
  request.default_applies = options_.default_applies;
}

void AuthQuestion::Add(std::string_view key, std::string_view value) {
  if (value.empty()) return;
  entries_[count_++] = {key, arena_.Copy(value.substr(0, http::kMaxValueBytes))};
}

void AuthQuestion::AddIp(std::string_view remote) {
  const auto peer = IpAddress::Parse(remote);
  if (!peer) return;
  const auto nth = [this](std::size_t n) -> std::optional<std::string_view> {
    for (const http::Header& header : request_.headers) {
      if (!EqualsIgnoringCase(header.name, "X-Forwarded-For")) continue;
      if (n-- == 0) return header.value;
    }
    return std::nullopt;
  };
  Add("ip",
      ClientKey(filter::ResolveClient(*peer, nth, options_.trusted_proxies), options_.grouping));
  address_ = entries_[0].value;
}

/// The value of a field that may occur once: of two, one was not written by the proxy.
std::string_view AuthQuestion::Only(std::string_view name) {
  std::string_view value;
  bool found = false;
  for (const http::Header& header : request_.headers) {
    if (!filter::ReadsAsField(header.name, name)) continue;
    if (found || !EqualsIgnoringCase(header.name, name)) error_ = kDoubled;
    found = true;
    value = header.value;
  }
  return value;
}

void AuthQuestion::AddIdentity(std::string_view key, std::string_view header) {
  Add(key, Only(header));
}

void AuthQuestion::AddTarget() {
  if (options_.target == AuthTarget::kNone) return;
  const std::string_view original = Only("X-Original-URI");
  const std::string_view original_method = Only("X-Original-Method");
  const std::string_view forwarded = Only("X-Forwarded-Uri");
  const std::string_view forwarded_method = Only("X-Forwarded-Method");
  const bool has_original = !original.empty() || !original_method.empty();
  const bool has_forwarded = !forwarded.empty() || !forwarded_method.empty();
  if (has_original && has_forwarded) {
    error_ =
        "both X-Original-… and X-Forwarded-Uri or -Method were sent: have the proxy remove the "
        "pair that it does not set, and name the other in auth.target";
    return;
  }
  if (options_.target == AuthTarget::kOriginal && original.empty()) {
    error_ = "X-Original-URI is missing, and auth.target is original";
    return;
  }
  if (options_.target == AuthTarget::kForwarded && forwarded.empty()) {
    error_ = "X-Forwarded-Uri is missing, and auth.target is forwarded";
    return;
  }
  const std::string_view method = has_original ? original_method : forwarded_method;
  if (HasLowerCase(method)) {
    error_ = http::kLowerCaseMethod;
    return;
  }
  Add("method", method);
  if (const char* why = routes_.Read(has_original ? original : forwarded)) error_ = why;
}

}  // namespace weir::service
