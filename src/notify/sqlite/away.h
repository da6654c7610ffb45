#pragma once

#include <functional>
#include <utility>

#include "weir/result.h"

namespace weir::notify::sqlite {

/// How an error of the database is reported.
inline Error Away(const Error& error) {
  return {Code::kUnavailable, "the embedded database is temporarily unavailable: " + error.message};
}

/// Tells `done` either the value or Away.
template <typename T>
std::function<void(Result<T>)> OrAway(std::function<void(Result<T>)> done) {
  return [done = std::move(done)](Result<T> result) {
    if (!result.ok()) return done(Away(result.error()));
    done(std::move(result));
  };
}

}  // namespace weir::notify::sqlite
