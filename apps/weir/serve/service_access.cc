// Who may do what, wired into each door of the service.

#include "admin/audit_json.h"
#include "protocol/http/error.h"
#include "serve/service.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

using access::Operation;
using Verdict = access::Admission::Verdict;

Status ToStatus(const access::Admission& admission, Operation operation) {
  if (admission.admitted()) return {};
  Code code = Code::kUnauthenticated;
  if (admission.verdict == Verdict::kRoleMissing) code = Code::kPermissionDenied;
  if (admission.verdict == Verdict::kSlowedDown) code = Code::kResourceExhausted;
  return Error{code, access::Explain(admission, operation)};
}

/// GET /v1/auth carries the headers of the client that a proxy asks about, and that client's key is
/// not one of ours: only the field that the proxy itself sets counts there.
std::string_view KeyFor(const http::Request& request) {
  return request.path == "/v1/auth" ? request.Find("X-Weir-Key") : admin::ApiKeyOf(request);
}

/// A proxy that calls GET /v1/auth passes on what a browser sent to the site behind it.
bool PassesOnABrowser(const http::Request& request) { return request.path == "/v1/auth"; }

/// Operations that need a key if any are configured, and otherwise are open to this machine only.
bool IsPrivate(Operation operation) {
  return operation == Operation::kGiveBack || operation == Operation::kSlotsChange ||
         operation == Operation::kSend;
}

/// What the audit log calls a method that may return permits; empty: it does not.
std::string_view GivesBack(const grpc::Method& method) {
  if (method.path().ends_with("/Refund")) return "check.refund";
  if (method.path().ends_with("/Release")) return "check.release";
  if (method.path().ends_with("/Settle")) return "check.settle";
  return {};
}

Operation OperationOf(const grpc::Method& method) {
  if (!method.path().starts_with("/weir.v1.") && !method.path().starts_with("/envoy.")) {
    return Operation::kPublic;  // health and reflection
  }
  return GivesBack(method).empty() ? Operation::kCheck : Operation::kGiveBack;
}

}  // namespace

Status Service::OpenAccess() {
  access::BearerOf bearer;
  if (config_.oidc.enabled()) {
    tokens_ = std::make_unique<access::Tokens>(config_.oidc);
    auto source = access::JwksSource::Open(config_.oidc.jwks, config_.oidc.jwks_ca, *tokens_);
    if (!source.ok()) return source.error();
    jwks_ = std::move(*source);
    bearer = [this](std::string_view token) {
      return tokens_->Verify(token, SystemClock::Get().Now());
    };
  }
  auto gate = std::make_shared<access::Gate>(config_.access, config_.admin.keys, std::move(bearer),
                                             SystemClock::Get(), config_.resp.keys);
  guard_.emplace(gate, config_.admin.allow, config_.admin.keyless);
  http_options_.authorize_check = Authorized(Operation::kCheck);
  http_options_.authorize_give_back = AuthorizedToGiveBack();
  http_options_.on_give_back = [this](const http::Request& request, std::string_view remote,
                                      std::string_view action, std::size_t count) {
    audit_tally_->Note(WhoGaveBack(request, remote), action, {}, count);
  };
  if (config_.admin.short_keys) {
    telemetry::Log(telemetry::Level::kWarn,
                   "a key of admin.keys has fewer than 16 characters; use a longer one");
  }
  return {};
}

service::HttpOptions::Authorize Service::Authorized(Operation operation) const {
  access::Gate& gate = guard_->gate();
  if (gate.IsOpen(operation)) return {};
  return [this, &gate, operation](const http::Request& request, std::string_view remote) -> Status {
    const auto admission =
        gate.Admit({remote, KeyFor(request), request.subject, "http"}, operation);
    if (!admission.admitted()) return ToStatus(admission, operation);
    request.caller = admission.Holder();
    if (!RefuseForged(request, remote, admission)) return {};
    return Error{Code::kPermissionDenied, "requests from pages of other sites are refused"};
  };
}

/// A browser sends its certificate whichever site's page triggers the request, unlike a key.
std::optional<http::Response> Service::RefuseForged(const http::Request& request,
                                                    std::string_view remote,
                                                    const access::Admission& admission) const {
  const bool by_itself = admission.proof == access::Admission::Proof::kCertificate;
  if (!by_itself || PassesOnABrowser(request)) return std::nullopt;
  return guard_->RefusePage(request, remote, /*private_to_machine=*/false);
}

/// If everyone may return permits, the key that a caller claims has not been checked.
std::string Service::WhoGaveBack(const http::Request& request, std::string_view remote) const {
  if (guard_->gate().IsOpen(Operation::kGiveBack)) return admin::WhoAsks({}, remote);
  if (!request.caller.empty()) return request.caller + " from " + std::string(remote);
  return admin::WhoAsks(KeyFor(request), remote);
}

service::HttpOptions::Authorize Service::AuthorizedToGiveBack() const {
  if (auto by_key = Authorized(Operation::kGiveBack)) return by_key;
  return [this](const http::Request& request, std::string_view remote) -> Status {
    if (PassesOnABrowser(request)) return {};
    if (!guard_->RefusePage(request, remote, IsPrivate(Operation::kGiveBack))) return {};
    return Error{Code::kPermissionDenied,
                 "requests from pages of other sites are refused; without keys, callers on this "
                 "machine must use localhost as Host"};
  };
}

/// The admin API's own routes are guarded one by one (admin::Guarded), with more than keys; this
/// guards all the others, those of the products.
void Service::GuardRoutes(http::Router& router) {
  std::vector<Operation> operations;
  for (const auto& [method, path] : router.routes()) {
    operations.push_back(access::OperationOf(method, path));
  }
  router.SetGuard([this, operations](const http::Request& request,
                                     std::size_t route) -> std::optional<http::Response> {
    const Operation operation = operations[route];
    if (operation >= Operation::kRead || operation == Operation::kPublic) return std::nullopt;
    if (guard_->gate().IsOpen(operation)) {
      request.key_unchecked = true;
      return guard_->RefusePage(request, request.remote, IsPrivate(operation));
    }
    const auto admission = guard_->gate().Admit(
        {request.remote, admin::ApiKeyOf(request), request.subject, "http"}, operation);
    if (!admission.admitted()) return admin::RefusalOf(admission, operation);
    request.caller = admission.Holder();
    return RefuseForged(request, request.remote, admission);
  });
  router.SetObserver([this, operations](const http::Request& request, std::size_t route) {
    return AuditOf(request, operations[route]);
  });
}

/// There are many a second: one entry a minute for each caller.
void Service::AuditClaim(const http::Request& request, const std::string& config,
                         std::size_t count) {
  audit_tally_->Note(admin::WhoAsks(request), "slot.claim", config, count);
}

/// What a dispatcher claimed directly in the database: it has no key, only the name that it gives.
void Service::AuditNote(const slots::ClaimNote& note, const slots::ClaimAudit::Written& written) {
  policy::AuditEntry entry{.at = note.minute * 1'000'000,
                           .who = "database: " + note.by,
                           .action = "slot.claim",
                           .target = note.config};
  JsonWriter(entry.after).BeginObject().Field("count", note.events).EndObject();
  policy_store_->Append(std::move(entry),
                        [written](const Result<std::int64_t>& id) { written(id.ok()); });
}

/// Changes of slots write their own entries.
http::Router::Witness Service::AuditOf(const http::Request& request, Operation operation) {
  if (operation != Operation::kSend || request.method != "POST") return {};
  return [this, who = admin::WhoAsks(request)](const http::Response& response) {
    if (response.status / 100 == 2) audit_tally_->Note(who, "notify.send", {}, 1);
  };
}

Status Service::AdmitCall(const grpc::Method& method, const grpc::Caller& caller) {
  const Operation operation = caller.gives_back ? Operation::kGiveBack : OperationOf(method);
  const access::Admission admission =
      guard_->gate().Admit({caller.address, caller.key, caller.subject, "grpc"}, operation);
  if (admission.admitted() && operation == Operation::kGiveBack) {
    const std::string holder = admission.Holder();
    const bool unchecked = guard_->gate().IsOpen(operation);
    const std::string_view key = unchecked ? std::string_view() : caller.key;
    audit_tally_->Note(holder.empty() ? admin::WhoAsks(key, caller.address)
                                      : holder + " from " + std::string(caller.address),
                       caller.gives_back ? "check.refund" : GivesBack(method), {}, 1);
  }
  return ToStatus(admission, operation);
}

void Service::Audit(policy::AuditEntry entry) {
  const policy::AuditEntry told{.who = entry.who, .action = entry.action, .target = entry.target};
  policy_store_->Append(std::move(entry), [told](const Result<std::int64_t>& written) {
    if (written.ok()) return;
    telemetry::Log(telemetry::Level::kError, "cannot write a change to the audit log",
                   {{"who", std::string_view(told.who)},
                    {"action", std::string_view(told.action)},
                    {"target", std::string_view(told.target)},
                    {"error", std::string_view(written.error().message)}});
  });
}

}  // namespace weir::app
