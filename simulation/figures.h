#pragma once

#include <functional>
#include <string>

namespace weir::simulation {

/// What leasing costs and saves at steady demand, without faults, in virtual time. False if a limit
/// was exceeded. Under-admission is measured against exact policies in the same world.
using Tell = std::function<void(const std::string& name, double value, const char* unit)>;
bool MeasureFigures(const Tell& tell);
/// How evenly 32 nodes that want more than there is get it, each relative to its demand. Also false
/// if an index is below 0.95.
bool MeasureFairness(const Tell& tell);

}  // namespace weir::simulation
