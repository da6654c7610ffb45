#include "config/roles.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::access {
namespace {

constexpr std::array<std::pair<std::string_view, Role>, 8> kRoles = {
    {{"check", Role::kCheck},
     {"slots", Role::kSlots},
     {"send", Role::kSend},
     {"read", Role::kRead},
     {"operate", Role::kOperate},
     {"admin", Role::kAdmin},
     {"store", Role::kStore},
     {"policies", Role::kPolicies}}};

constexpr std::array<std::pair<std::string_view, Operation>, 5> kOpenable = {
    {{"check", Operation::kCheck},
     {"give_back", Operation::kGiveBack},
     {"slots", Operation::kSlots},
     {"slots_change", Operation::kSlotsChange},
     {"send", Operation::kSend}}};

constexpr Roles Bits(Role role) noexcept { return static_cast<Roles>(role); }

Operation OfChecks(std::string_view name) noexcept {
  const bool gives_back = name == "refund" || name == "release" || name == "settle";
  return gives_back ? Operation::kGiveBack : Operation::kCheck;
}

/// `rest` is what follows /api/v1/slots.
Operation OfSlots(std::string_view method, std::string_view rest) noexcept {
  const bool assigns = method == "POST" && (rest.empty() || rest == "/batch");
  return assigns ? Operation::kSlots : Operation::kSlotsChange;
}

Operation OfAdmin(bool reads, std::string_view path) noexcept {
  // A dead letter is shown with the text of its message.
  const bool letter = path.starts_with("/admin/notify/dead/");
  const bool policies = path == "/admin/policies" || path.starts_with("/admin/policies/");
  // For a policy's change; the handler requires more for other changes.
  const bool undoes = path.starts_with("/admin/audit/") && path.ends_with("/undo");
  if (policies || undoes) return reads ? Operation::kReadPolicies : Operation::kPolicies;
  if (reads) return letter ? Operation::kOperate : Operation::kRead;
  const bool operates = path.starts_with("/admin/reset") ||
                        path == "/admin/rate-limit/cache/flush" ||
                        path == "/admin/notify/dead/replay";
  return operates ? Operation::kOperate : Operation::kAdmin;
}

}  // namespace

bool MayDo(Roles roles, Operation operation) noexcept {
  if ((roles & Bits(Role::kAdmin)) != 0) return true;
  switch (operation) {
    case Operation::kPublic:
      return true;
    case Operation::kCheck:
    case Operation::kGiveBack:
      return (roles & Bits(Role::kCheck)) != 0;
    case Operation::kSlots:
    case Operation::kSlotsChange:
      return (roles & Bits(Role::kSlots)) != 0;
    case Operation::kSend:
      return (roles & Bits(Role::kSend)) != 0;
    case Operation::kRead:
      return (roles & (Bits(Role::kRead) | Bits(Role::kOperate))) != 0;
    case Operation::kReadPolicies:
      return (roles & (Bits(Role::kRead) | Bits(Role::kOperate) | Bits(Role::kPolicies))) != 0;
    case Operation::kPolicies:
      return (roles & Bits(Role::kPolicies)) != 0;
    case Operation::kOperate:
      return (roles & Bits(Role::kOperate)) != 0;
    case Operation::kStore:
      return (roles & Bits(Role::kStore)) != 0;
    case Operation::kAdmin:
      return false;
  }
  return false;
}

std::string_view RoleNeeded(Operation operation) noexcept {
  switch (operation) {
    case Operation::kPublic:
      return "none";
    case Operation::kCheck:
    case Operation::kGiveBack:
      return "check";
    case Operation::kSlots:
    case Operation::kSlotsChange:
      return "slots";
    case Operation::kSend:
      return "send";
    case Operation::kRead:
    case Operation::kReadPolicies:
      return "read";
    case Operation::kPolicies:
      return "policies";
    case Operation::kOperate:
      return "operate";
    case Operation::kAdmin:
      return "admin";
    case Operation::kStore:
      return "store";
  }
  return "admin";
}

Result<Roles> ParseRoles(std::string_view text) {
  Roles roles = kNoRoles;
  while (true) {
    const std::size_t end = std::min(text.find('+'), text.size());
    const auto found =
        std::ranges::find(kRoles, text.substr(0, end), &std::pair<std::string_view, Role>::first);
    if (found == kRoles.end()) {
      return Error{
          Code::kInvalidArgument,
          "unknown role '" + std::string(text.substr(0, std::min<std::size_t>(end, 32))) +
              "'; the roles are check, slots, send, read, policies, operate, store and admin"};
    }
    roles |= Bits(found->second);
    if (end == text.size()) return roles;
    text.remove_prefix(end + 1);
  }
}

std::optional<Operation> ParseOpenable(std::string_view text) noexcept {
  const auto found =
      std::ranges::find(kOpenable, text, &std::pair<std::string_view, Operation>::first);
  if (found == kOpenable.end()) return std::nullopt;
  return found->second;
}

Operation OperationOf(std::string_view method, std::string_view path) noexcept {
  constexpr std::string_view kChecks = "/v1/";
  constexpr std::string_view kSlots = "/api/v1/slots";
  const bool reads = method == "GET" || method == "HEAD";
  if (path.starts_with(kChecks)) return OfChecks(path.substr(kChecks.size()));
  if (path.starts_with(kSlots)) return OfSlots(method, path.substr(kSlots.size()));
  if (reads && path == "/api/config") return Operation::kRead;
  if (path == "/api/send" || (reads && path.starts_with("/api/"))) return Operation::kSend;
  // Asks what a change would do, and makes none.
  const bool asks =
      method == "POST" && path.starts_with("/admin/policies/") && path.ends_with("/check");
  if (path.starts_with("/admin/")) return OfAdmin(reads || asks, path);
  return reads ? Operation::kPublic : Operation::kAdmin;
}

}  // namespace weir::access
