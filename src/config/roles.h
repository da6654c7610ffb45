#pragma once

// Who may do what: a key has roles, and every operation of every door needs one of them.
// docs/reference/access.md has the table for people.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/result.h"

namespace weir::access {

/// What a key may be for. Bits of Roles.
enum class Role : std::uint8_t {
  kCheck = 1,       ///< ask and give back on any door
  kSlots = 2,       ///< assign, find, cancel and move slots
  kSend = 4,        ///< send messages
  kRead = 8,        ///< look at everything in the admin API
  kOperate = 16,    ///< read, and act in an incident: reset, override, flush
  kAdmin = 32,      ///< everything
  kStore = 64,      ///< use this service as a store: of another Weir
  kPolicies = 128,  ///< read and change policies
};
using Roles = std::uint8_t;
inline constexpr Roles kNoRoles = 0;
inline constexpr Roles kEveryRole = 255;

/// What a caller wants to do, as far as it matters here.
enum class Operation : std::uint8_t {
  kPublic,       ///< health, metrics, the dashboard's files: never needs a key
  kCheck,        ///< check and peek
  kGiveBack,     ///< refund and release
  kSlots,        ///< assign slots
  kSlotsChange,  ///< read events with their payloads, cancel and move them, execute them
  kSend,         ///< send messages
  kRead,
  kReadPolicies,
  kOperate,
  kPolicies,  ///< change policies
  kAdmin,
  kStore,  ///< charge, give back and reset any key under any quota
};
inline constexpr std::size_t kOperations = static_cast<std::size_t>(Operation::kStore) + 1;

/// Whether these roles suffice.
bool MayDo(Roles roles, Operation operation) noexcept;

/// The role that an operation needs, as people read it: "check"; "none" for kPublic.
std::string_view RoleNeeded(Operation operation) noexcept;

/// "read", or several joined with '+': "check+slots".
Result<Roles> ParseRoles(std::string_view text);

/// One that may be opened to callers without a key (access.open): check, give_back, slots,
/// slots_change or send.
std::optional<Operation> ParseOpenable(std::string_view text) noexcept;

/// What a request of the HTTP door wants. `path` without a query, encoded or as a pattern. What is
/// not known needs the most.
Operation OperationOf(std::string_view method, std::string_view path) noexcept;

}  // namespace weir::access
