#include "policy/envoy_filters.h"

#include <initializer_list>
#include <map>
#include <set>

namespace weir::policy {
namespace {

using yaml::Node;
using yaml::Problem;

// Envoy's matchers nest deeply.
constexpr std::size_t kMaxDepth = 128;
constexpr std::size_t kMaxWarnings = 100;

const Node* Find(const Node* node, std::string_view name) {
  if (node == nullptr) return nullptr;
  for (const auto& [key, value] : node->fields) {
    if (key->scalar == name) return value;
  }
  return nullptr;
}

const Node* FindPath(const Node* node, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) node = Find(node, name);
  return node;
}

std::string_view TextOf(const Node* node) {
  return node == nullptr ? std::string_view() : std::string_view(node->scalar);
}

bool IsType(const Node& node, std::string_view type) {
  const std::string_view name = TextOf(Find(&node, "@type"));
  return name.size() > type.size() && name.ends_with(type) &&
         name[name.size() - type.size() - 1] == '.';
}

bool IsRls(const Node& node) {
  return TextOf(Find(&node, "@type")).ends_with(".filters.http.ratelimit.v3.RateLimit");
}

/// The kind of a rate_limit_strategy, as far as it matters here.
enum class Strategy : std::uint8_t { kNone, kDenyAll, kAllowAll, kTokenBucket, kPerTimeUnit };

Strategy StrategyOf(const Node* node) {
  if (Find(node, "token_bucket") != nullptr) return Strategy::kTokenBucket;
  if (Find(node, "requests_per_time_unit") != nullptr) return Strategy::kPerTimeUnit;
  const Node* rule = Find(node, "blanket_rule");
  if (rule == nullptr) return Strategy::kNone;
  return rule->scalar == "DENY_ALL" || rule->scalar == "1" ? Strategy::kDenyAll
                                                           : Strategy::kAllowAll;
}

class Checker {
 public:
  Checker(std::string file, EnvoyFilters& found) : file_(std::move(file)), found_(found) {}

  void Check(const Node& root) {
    ReadClusters(FindPath(&root, {"static_resources", "clusters"}));
    Walk(root);
  }

 private:
  void Warn(const Node& at, std::string message) {
    if (found_.warnings.size() < kMaxWarnings) {
      found_.warnings.push_back({file_, at.mark, std::move(message)});
    }
  }

  void ReadClusters(const Node* clusters);
  void Walk(const Node& node);
  void CheckRls(const Node& filter);
  void CheckRlqs(const Node& filter);
  void CheckBucket(const Node& settings);
  void CheckNoAssignment(const Node& settings);
  void CheckExpired(const Node& settings);
  void CheckService(const Node& filter, const Node* service, std::string_view field, bool stream);

  std::string file_;
  EnvoyFilters& found_;
  std::map<std::string, const Node*, std::less<>> clusters_;
  std::set<const Node*> seen_;  // clusters that were checked
};

void Checker::ReadClusters(const Node* clusters) {
  if (clusters == nullptr) return;
  for (const Node* cluster : clusters->items) {
    clusters_.emplace(std::string(TextOf(Find(cluster, "name"))), cluster);
  }
}

void Checker::Walk(const Node& node) {
  if (IsRls(node)) CheckRls(node);
  if (IsType(node, "RateLimitQuotaFilterConfig")) CheckRlqs(node);
  if (IsType(node, "RateLimitQuotaBucketSettings")) CheckBucket(node);
  for (const Node* item : node.items) Walk(*item);
  for (const auto& [key, value] : node.fields) Walk(*value);
}

/// `stream`: a long-lived stream, which must not hang unnoticed.
void Checker::CheckService(const Node& filter, const Node* service, std::string_view field,
                           bool stream) {
  if (service == nullptr) {
    return Warn(filter, std::string(field) + " is missing: every request is admitted");
  }
  const std::string name(TextOf(FindPath(service, {"envoy_grpc", "cluster_name"})));
  if (name.empty() || clusters_.empty()) return;  // Google's client, or clusters from elsewhere
  const auto found = clusters_.find(name);
  if (found == clusters_.end()) {
    return Warn(*service, "cluster " + name + " is not among static_resources.clusters");
  }
  const Node* cluster = found->second;
  if (!seen_.insert(cluster).second) return;
  const Node* options = nullptr;
  if (const Node* extensions = Find(cluster, "typed_extension_protocol_options")) {
    options = FindPath(extensions, {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                                    "explicit_http_config", "http2_protocol_options"});
  }
  if (options == nullptr) options = Find(cluster, "http2_protocol_options");
  if (options == nullptr) {
    return Warn(*cluster, "cluster " + name +
                              " has no http2_protocol_options: gRPC needs HTTP/2, so no call would "
                              "reach Weir");
  }
  if (stream && Find(options, "connection_keepalive") == nullptr) {
    Warn(*cluster, "cluster " + name +
                       " has no connection_keepalive: a hung connection is detected too late for "
                       "the assignments; set { interval: 1s, timeout: 2s }");
  }
}

void Checker::CheckRls(const Node& filter) {
  ++found_.rls;
  if (TextOf(Find(&filter, "domain")).empty()) Warn(filter, "domain is missing");
  const Node* service = Find(&filter, "rate_limit_service");
  CheckService(filter, service == nullptr ? nullptr : Find(service, "grpc_service"),
               "rate_limit_service.grpc_service", false);
  if (service != nullptr && TextOf(Find(service, "transport_api_version")) != "V3") {
    Warn(*service, "transport_api_version must be V3");
  }
  const Node* deny = Find(&filter, "failure_mode_deny");
  if (deny == nullptr) {
    Warn(filter,
         "failure_mode_deny is not set: while Weir does not answer, every request is admitted; say "
         "false if that is intended");
  }
  if (Find(&filter, "timeout") == nullptr) {
    Warn(filter,
         "timeout is not set: Envoy gives up after 20 ms, and then follows failure_mode_deny");
  }
}

void Checker::CheckRlqs(const Node& filter) {
  ++found_.rlqs;
  if (TextOf(Find(&filter, "domain")).empty()) Warn(filter, "domain is missing");
  CheckService(filter, Find(&filter, "rlqs_server"), "rlqs_server", true);
  const Node* matchers = Find(&filter, "bucket_matchers");
  if (matchers == nullptr) return Warn(filter, "bucket_matchers is missing: nothing is limited");
  if (Find(matchers, "on_no_match") == nullptr) {
    Warn(*matchers, "on_no_match is missing: requests that no matcher matches are not limited");
  }
}

void Checker::CheckBucket(const Node& settings) {
  const Node* id = FindPath(&settings, {"bucket_id_builder", "bucket_id_builder"});
  if (id == nullptr || id->fields.empty()) {
    Warn(settings, "bucket_id_builder has no entry: no policy can match the bucket");
  } else if (id->fields.size() > 16) {
    Warn(*id, "bucket_id_builder has more than 16 entries: Weir rejects such a bucket");
  }
  const Node* interval = Find(&settings, "reporting_interval");
  if (interval != nullptr && interval->scalar != "5s") {
    Warn(*interval, "reporting_interval has no effect: Envoy 1.40 reports every 5 s");
  }
  CheckNoAssignment(settings);
  CheckExpired(settings);
}

void Checker::CheckNoAssignment(const Node& settings) {
  const Node* behavior = Find(&settings, "no_assignment_behavior");
  if (behavior == nullptr) {
    return Warn(settings,
                "no_assignment_behavior is missing: requests are admitted until the first "
                "assignment; set fallback_rate_limit: { blanket_rule: DENY_ALL }");
  }
  switch (StrategyOf(Find(behavior, "fallback_rate_limit"))) {
    case Strategy::kDenyAll:
      return;
    case Strategy::kTokenBucket:
      return Warn(*behavior,
                  "no_assignment_behavior has a token_bucket: Envoy 1.40 crashes at the next "
                  "request; set blanket_rule: DENY_ALL");
    case Strategy::kPerTimeUnit:
      return Warn(*behavior,
                  "no_assignment_behavior has requests_per_time_unit, which Envoy 1.40 ignores: "
                  "everything is admitted; set blanket_rule: DENY_ALL");
    default:
      return Warn(*behavior,
                  "no_assignment_behavior admits everything without an assignment, so the limit "
                  "does not hold while Weir is down; set blanket_rule: DENY_ALL");
  }
}

void Checker::CheckExpired(const Node& settings) {
  const Node* behavior = Find(&settings, "expired_assignment_behavior");
  if (behavior == nullptr) {
    return Warn(settings,
                "expired_assignment_behavior is missing; set fallback_rate_limit: { blanket_rule: "
                "DENY_ALL } with an expired_assignment_behavior_timeout");
  }
  if (Find(behavior, "expired_assignment_behavior_timeout") == nullptr) {
    Warn(*behavior,
         "expired_assignment_behavior_timeout is missing: Envoy 1.40 then goes to "
         "no_assignment_behavior at once");
  }
  if (const Node* reuse = Find(behavior, "reuse_last_assignment")) {
    return Warn(*reuse,
                "reuse_last_assignment admits requests that nobody counts while Weir is down; set "
                "fallback_rate_limit: { blanket_rule: DENY_ALL }");
  }
  if (StrategyOf(Find(behavior, "fallback_rate_limit")) != Strategy::kDenyAll) {
    Warn(*behavior,
         "expired_assignment_behavior admits requests that nobody counts while Weir is down; set "
         "fallback_rate_limit: { blanket_rule: DENY_ALL }");
  }
}

}  // namespace

EnvoyFilters CheckEnvoyFilters(std::string_view text, const std::string& file,
                               std::vector<Problem>& problems) {
  EnvoyFilters found;
  yaml::Limits limits;
  limits.max_depth = kMaxDepth;
  const auto document = yaml::Document::Parse(text, file, problems, limits);
  if (document.root() == nullptr) return found;
  Checker(file, found).Check(*document.root());
  if (found.rls + found.rlqs == 0) {
    found.warnings.push_back(
        {file, {}, "no rate limit filter: neither ratelimit nor rate_limit_quota"});
  }
  return found;
}

}  // namespace weir::policy
