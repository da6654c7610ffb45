#pragma once

// Access rights: a key has roles, and every operation of every protocol needs one of them.
// docs/reference/access.md has the table for users.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/result.h"

namespace weir::access {

/// What a key may be used for. Bits of Roles.
enum class Role : std::uint8_t {
  kCheck = 1,       ///< check and return permits on any protocol
  kSlots = 2,       ///< assign, find, cancel and move slots
  kSend = 4,        ///< send messages
  kRead = 8,        ///< read everything in the admin API
  kOperate = 16,    ///< read, and act in an incident: reset, override, flush
  kAdmin = 32,      ///< everything
  kStore = 64,      ///< use this service as a store, from another Weir
  kPolicies = 128,  ///< read and change policies
};
using Roles = std::uint8_t;
inline constexpr Roles kNoRoles = 0;
inline constexpr Roles kEveryRole = 255;

/// What a caller wants to do, as far as access rights distinguish it.
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
  kStore,  ///< charge, refund and reset any key under any quota
};
inline constexpr std::size_t kOperations = static_cast<std::size_t>(Operation::kStore) + 1;

/// Whether these roles suffice.
bool MayDo(Roles roles, Operation operation) noexcept;

/// The name of the role that an operation needs: "check"; "none" for kPublic.
std::string_view RoleNeeded(Operation operation) noexcept;

/// Parses "read", or several joined with '+': "check+slots".
Result<Roles> ParseRoles(std::string_view text);

/// Parses an operation that can be opened to callers without a key (access.open): check, give_back,
/// slots, slots_change or send.
std::optional<Operation> ParseOpenable(std::string_view text) noexcept;

/// The operation of an HTTP request. `path` has no query; it is encoded or a pattern. Unknown paths
/// need the most rights.
Operation OperationOf(std::string_view method, std::string_view path) noexcept;

}  // namespace weir::access
