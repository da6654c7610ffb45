#include <iostream>

#include "command.h"
#include "telemetry/version.h"

namespace weir::app::version_command {
namespace {

void Configure(Syntax word, int&) {
  word.OnRun([] { std::cout << "weir " << telemetry::kVersion << '\n'; });
}

const Command kVersion("version", "Print the version.", Configure);

}  // namespace
}  // namespace weir::app::version_command
