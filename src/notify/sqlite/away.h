#pragma once

#include <functional>
#include <utility>

#include "weir/result.h"

namespace weir::notify::sqlite {

/// The error that is reported for an error of the database.
inline Error Away(const Error& error) {
  return {Code::kUnavailable, "the embedded database is temporarily unavailable: " + error.message};
}

/// Passes either the value or Away to `done`.
template <typename T>
std::function<void(Result<T>)> OrAway(std::function<void(Result<T>)> done) {
  return [done = std::move(done)](Result<T> result) {
    if (!result.ok()) return done(Away(result.error()));
    done(std::move(result));
  };
}

}  // namespace weir::notify::sqlite
