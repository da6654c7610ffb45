#pragma once

#include <functional>
#include <optional>
#include <string>

#include "protocol/http/message.h"
#include "weir/result.h"

namespace weir::admin {

/// A kind of configuration that the API changes, such as slot configs or users' limits, with what
/// is needed to log any change of it with its previous state, and to undo it.
///
/// Thread-safe if its functions are; they are called from any thread, and must not block.
struct Undoable {
  /// An object of this kind as JSON; nullopt: it does not exist. It may end with `currentCount`,
  /// which is counted and not set: an undo ignores it, and the log has it only where a change reset
  /// it to 0.
  using State = std::optional<std::string>;
  template <typename T>
  using Done = std::function<void(T)>;

  std::string kind;  ///< "slots": logged as "slots.config" of "slots:NAME"
  /// The name of what a request changes; nullopt if the request will be refused anyway.
  std::function<std::optional<std::string>(const http::Request&)> name_of;
  std::function<void(std::string name, Done<Result<State>>)> read;
  /// Whether a request resets the count; null: none does.
  std::function<bool(const http::Request&)> resets_count = {};
  /// Restores the given state.
  std::function<void(std::string name, State, Done<Status>)> restore;
};

/// The error for a change that is neither of such a kind nor of a policy.
inline Error CannotUndo(const std::string& action) {
  return {Code::kFailedPrecondition,
          "'" + action +
              "' cannot be undone; only changes to policies, slot configs, user limits "
              "and preferences can"};
}

}  // namespace weir::admin
