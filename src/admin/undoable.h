#pragma once

#include <functional>
#include <optional>
#include <string>

#include "protocol/http/message.h"
#include "weir/result.h"

namespace weir::admin {

/// A kind of configuration that the API changes, such as slot configs or users' limits, seen so
/// that any change of it can be written down with what was before, and taken back.
///
/// Thread-safe if its functions are; they are called from any thread, and must not block.
struct Undoable {
  /// A thing of this kind as JSON; nothing: there is none. It may end with `currentCount`, which is
  /// counted and not set: an undo does not look at it, and the log has it only where a change set
  /// it back to 0.
  using State = std::optional<std::string>;
  template <typename T>
  using Done = std::function<void(T)>;

  std::string kind;  ///< "slots": logged as "slots.config" of "slots:NAME"
  /// The name of what a request changes; nothing if the request will be refused anyway.
  std::function<std::optional<std::string>(const http::Request&)> name_of;
  std::function<void(std::string name, Done<Result<State>>)> read;
  /// Whether a request sets the count back; empty: none does.
  std::function<bool(const http::Request&)> resets_count = {};
  /// Makes it what it was.
  std::function<void(std::string name, State, Done<Status>)> restore;
};

/// What to say of a change that is of no such kind, and of no policy.
inline Error CannotUndo(const std::string& action) {
  return {Code::kFailedPrecondition,
          "'" + action +
              "' cannot be undone; only changes to policies, slot configs, user limits "
              "and preferences can"};
}

}  // namespace weir::admin
