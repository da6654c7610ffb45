#pragma once

#include <string>

namespace weir::app {

/// Prints an object of the service with a field on each line. Returns the exit code.
int PrintFields(const std::string& json);

}  // namespace weir::app
