#include <iostream>

#include "command.h"
#include "telemetry/version.h"

namespace weir::app::version_command {
namespace {

void Configure(CLI::App& word, int&) {
  word.callback([] { std::cout << "weir " << telemetry::kVersion << '\n'; });
}

const Command kVersion("version", "Print the version of this program.", Configure);

}  // namespace
}  // namespace weir::app::version_command
