#include <iostream>

#include "command.h"
#include "telemetry/version.h"

namespace weir::app::version_command {
namespace {

void Configure(Syntax word) {
  word.OnRun([] {
    std::cout << "weir " << telemetry::kVersion << '\n';
    return 0;
  });
}

const Command kVersion("version", "Print the version.", Configure);

}  // namespace
}  // namespace weir::app::version_command
