#pragma once

#include <simdjson.h>

#include <memory>
#include <string_view>

#include "weir/result.h"

namespace weir::http {

/// A JSON body while a handler reads it. Small ones, which are nearly all, share memory that the
/// thread keeps; the memory of a large one goes with it. A parser takes more than ten times the
/// size of what it has read, so one that was kept would hold that much from then on.
///
/// Not thread-safe; one is in use at a time per thread.
class JsonBody {
 public:
  /// The object in `body`; kInvalidArgument if it is none. What it gives is valid as long as this.
  Result<simdjson::dom::object> Parse(std::string_view body);

 private:
  std::unique_ptr<simdjson::dom::parser> own_;
};

}  // namespace weir::http
