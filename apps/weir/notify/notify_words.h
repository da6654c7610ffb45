#pragma once

// What the words of `weir notify` share.

#include <simdjson.h>

#include <functional>
#include <string>
#include <string_view>

#include "command.h"
#include "remote/remote.h"

namespace weir::app {

/// Sends and prints the answer. A cap that is reached (429) is a "no", not a failure.
int SendNotify(const Remote& remote, std::string_view method, const std::string& target,
               std::string_view body);

/// Reads the list `field` page by page, at most `most` rows, and passes each row to `take`. Returns
/// the exit code. `target` already has a query.
int EachNotifyRow(const Remote& remote, const std::string& target, const char* field,
                  std::size_t most, const std::function<void(simdjson::dom::element)>& take);

void AddMessageWords(Syntax notify);
void AddDeadWords(Syntax notify);
void AddUserWords(Syntax notify);

}  // namespace weir::app
