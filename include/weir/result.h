#pragma once

#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace weir {

/// Why a call failed. The names are those of gRPC, and every protocol maps them in the same
/// way.
enum class Code {
  kInvalidArgument,
  kNotFound,
  kAlreadyExists,
  kFailedPrecondition,
  kUnauthenticated,
  kPermissionDenied,
  kResourceExhausted,
  kDeadlineExceeded,
  kUnavailable,
  kUnimplemented,
  kInternal,
};

/// The code's name as it appears in logs and in error bodies, e.g. "invalid_argument".
std::string_view CodeName(Code code) noexcept;

/// A code for the program and a message for a person.
struct Error {
  Code code = Code::kInternal;
  std::string message;

  friend bool operator==(const Error&, const Error&) = default;
};

/// A value, or the reason there is none. A limited request is a value (a Decision), never an Error.
///
/// Ignoring a Result does not compile without a warning. Not thread-safe, like any value.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  /// Requires ok().
  T& value() & noexcept {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& noexcept {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && noexcept {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & noexcept { return value(); }
  const T& operator*() const& noexcept { return value(); }
  T&& operator*() && noexcept { return std::move(*this).value(); }
  T* operator->() noexcept { return &value(); }
  const T* operator->() const noexcept { return &value(); }

  /// Requires !ok().
  const Error& error() const noexcept {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

/// Success, or the reason for the failure.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error)
      : error_(std::move(error)), ok_(false) {}  // NOLINT(google-explicit-constructor)

  bool ok() const noexcept { return ok_; }
  explicit operator bool() const noexcept { return ok_; }
  const Error& error() const noexcept {
    assert(!ok_);
    return error_;
  }

 private:
  Error error_;
  bool ok_ = true;
};

using Status = Result<void>;

}  // namespace weir
