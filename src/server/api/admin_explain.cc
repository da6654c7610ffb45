// GET /admin/explain: which policies meet a request, what their counters say, and when it clears.

#include <charconv>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "limiter/explain.h"
#include "protocol/http/check_reader.h"
#include "protocol/http/error.h"
#include "protocol/http/response_writer.h"
#include "protocol/http/uri.h"
#include "server/api/admin.h"

namespace weir::server {
namespace {

/// A request as a query describes it: ?key=user-123, or ?domain=api&user=42&route=/v1/pay&cost=2,
/// where every other name is an entry of one descriptor.
struct Described {
  std::string key;
  std::string domain;
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<policy::Entry> entries;
  policy::Descriptor descriptor;
  policy::Request request;
  http::Reply reply;

  void Finish() {
    for (const auto& [name, value] : texts) entries.push_back({name, value});
    descriptor = entries;
    request.domain = domain;
    request.key = key;
    if (key.empty()) request.descriptors = std::span(&descriptor, 1);
  }
};

Result<std::shared_ptr<Described>> ReadQuery(std::string_view query) {
  auto described = std::make_shared<Described>();
  http::QueryReader reader(query);
  while (const auto pair = reader.Next()) {
    auto name = http::DecodeQuery(pair->key);
    auto value = http::DecodeQuery(pair->value);
    if (!name || !value || value->size() > http::kMaxValueBytes) {
      return Error{Code::kInvalidArgument, "query: bad percent-encoding, or a value is too long"};
    }
    if (*name == "key") {
      described->key = *value;
    } else if (*name == "domain") {
      described->domain = *value;
    } else if (*name == "cost") {
      const auto [end, failed] =
          std::from_chars(value->data(), value->data() + value->size(), described->request.cost);
      if (failed != std::errc() || end != value->data() + value->size() ||
          described->request.cost < 0 || described->request.cost > kMaxLimit) {
        return Error{Code::kInvalidArgument, "cost: must be an integer from 0 to 1099511627776"};
      }
    } else if (described->texts.size() == http::kMaxEntries) {
      return Error{Code::kInvalidArgument, "query: too many entries"};
    } else {
      described->texts.emplace_back(std::move(*name), std::move(*value));
    }
  }
  if (described->key.empty() == described->texts.empty()) {
    return Error{Code::kInvalidArgument, "query: give either key=… or entries such as user=42"};
  }
  described->Finish();
  return described;
}

void AppendDecisionFields(std::string& out, const Decision& decision) {
  out += decision.allowed() ? "\"allowed\":true" : "\"allowed\":false";
  out.append(",\"limit\":").append(std::to_string(decision.limit));
  out.append(",\"remaining\":").append(std::to_string(decision.remaining));
  out.append(",\"retryAfterMs\":").append(std::to_string(http::CeilMillis(decision.retry_after)));
  out.append(",\"resetAfterMs\":").append(std::to_string(http::CeilMillis(decision.reset_after)));
}

void AppendText(std::string& out, std::string_view name, std::string_view value) {
  out.append(",\"").append(name).append("\":");
  http::AppendJsonString(out, value);
}

http::Response ToResponse(const limiter::Explanation& explanation) {
  if (!explanation.status.ok()) return http::ErrorResponse(explanation.status.error());
  http::Response response;
  std::string& body = response.body;
  body = "{";
  AppendDecisionFields(body, explanation.decision);
  AppendText(body, "policy", explanation.policy);
  AppendText(body, "why", explanation.why);
  body += ",\"policies\":[";
  for (std::size_t i = 0; i < explanation.policies.size(); ++i) {
    const limiter::ExplainedPolicy& policy = explanation.policies[i];
    body += i == 0 ? "{" : ",{";
    AppendDecisionFields(body, policy.decision);
    AppendText(body, "policy", policy.policy);
    AppendText(body, "quota", policy.quota);
    AppendText(body, "bucket", policy.key);
    AppendText(body, "source", policy.source);
    AppendText(body, "why", policy.why);
    if (!policy.replaced_by.empty()) AppendText(body, "replacedBy", policy.replaced_by);
    if (policy.shadow) body += ",\"shadow\":true";
    if (policy.degraded) body += ",\"degraded\":true";
    body += '}';
  }
  body += "]}";
  return response;
}

}  // namespace

void AddAdminExplain(Router& router, const AdminParts& parts, limiter::PolicyLimiter& limiter) {
  router.Add("GET", "/admin/explain",
             Guarded(parts.guard, [&limiter](const http::Request& request, http::Reply reply) {
               auto described = ReadQuery(request.query);
               if (!described.ok()) return reply(http::ErrorResponse(described.error()));
               (*described)->reply = std::move(reply);
               limiter::Explain(limiter, (*described)->request,
                                [kept = *described](const limiter::Explanation& explanation) {
                                  kept->reply(ToResponse(explanation));
                                });
             }));
}

}  // namespace weir::server
