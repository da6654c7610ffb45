#include "support/weir_process.h"

#include <charconv>
#include <optional>
#include <stdexcept>
#include <utility>

#include "support/paths.h"

namespace weir::test {
namespace {

std::vector<std::string> WithProgram(std::vector<std::string> args) {
  args.insert(args.begin(), Program());
  return args;
}

}  // namespace

WeirProcess::WeirProcess(std::vector<std::string> args, const SpawnOptions& options)
    : process_(WithProgram(std::move(args)), options) {}

std::uint16_t WeirProcess::Port(std::string_view door) {
  const std::string start = "listening " + std::string(door) + " ";
  const std::optional<std::string> line = process_.WaitForLine(start);
  if (!line) {
    throw std::runtime_error("weir did not say \"" + start + "\"\n" + process_.output() +
                             process_.error_output());
  }
  const std::string_view digits = std::string_view(*line).substr(line->rfind(':') + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || port == 0) throw std::runtime_error("no port in \"" + *line + "\"");
  return port;
}

}  // namespace weir::test
