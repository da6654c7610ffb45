#pragma once

#include <functional>
#include <string>

namespace weir::simulation {

/// What leasing costs and saves at steady demand, without faults, in virtual time. False if a limit
/// was exceeded. Under-admission is told against exact policies in the same world.
using Tell = std::function<void(const std::string& name, double value, const char* unit)>;
bool MeasureFigures(const Tell& tell);

}  // namespace weir::simulation
