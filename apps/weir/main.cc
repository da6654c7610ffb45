#include <google/protobuf/stubs/logging.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

std::vector<const Command*>& Commands() {
  static std::vector<const Command*> commands;
  return commands;
}

/// Removes secrets from what other users of the machine see of this process. They may have seen
/// them before this ran; files and the environment are better places.
void HideSecrets(int argc, char** argv) {
  bool hide = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    for (const std::string_view option : {"--key", "--admin-key"}) {
      if (word.starts_with(option) && word.substr(option.size()).starts_with('=')) {
        std::fill(argv[i] + option.size() + 1, argv[i] + word.size(), 'x');
      }
    }
    if (hide) std::fill(argv[i], argv[i] + word.size(), 'x');
    hide = word == "--key" || word == "--admin-key";
  }
}

/// protobuf logs a line for each message whose text is not UTF-8, and would write it to standard
/// error on the thread that reads the message: any client could fill a disk, or block the reactors
/// while standard error is not read. Such messages are answered; there is nothing more to report.
void OnProtobufLog(google::protobuf::LogLevel level, const char* /*file*/, int /*line*/,
                   const std::string& message) {
  if (level == google::protobuf::LOGLEVEL_FATAL) std::cerr << "protobuf: " << message << '\n';
}

/// Whether all output reached standard output. A pipe whose reader has closed it, as
/// with `| head`, is not an error.
bool WroteOutput() {
  errno = 0;
  std::cout.flush();
  const int error = errno;  // of this flush; that of an earlier one is no longer known
  if (std::cout && std::ferror(stdout) == 0) return true;
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0) return true;
  const char* const why = error != 0 ? strerrordesc_np(error) : nullptr;
  std::cerr << "weir: cannot write to standard output" << (why != nullptr ? ": " : "")
            << (why != nullptr ? why : "") << '\n';
  return false;
}

}  // namespace

Command::Command(const char* name, const char* description, Configure configure)
    : name_(name), description_(description), configure_(configure) {
  Commands().push_back(this);
}

void Command::Add(Syntax program) const { configure_(program.AddSubcommand(name_, description_)); }

std::vector<const Command*> Command::All() {
  std::vector<const Command*> commands = Commands();
  std::sort(commands.begin(), commands.end(), [](const Command* a, const Command* b) {
    return std::string_view(a->name()) < b->name();
  });
  return commands;
}

}  // namespace weir::app

int main(int argc, char** argv) {
  // A file that cannot grow is an error to report, like a full disk, and no reason to exit.
  signal(SIGXFSZ, SIG_IGN);
  google::protobuf::SetLogHandler(weir::app::OnProtobufLog);
  // Memory of a large request returns to the system. glibc would adapt to the first one and keep
  // up to 64 MiB for each thread.
  // NOLINTBEGIN(concurrency-mt-unsafe): there is one thread yet
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 2 << 20);
  // NOLINTEND(concurrency-mt-unsafe)
  try {
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    weir::app::HideSecrets(argc, argv);
    const int exit_code = weir::app::Command::Run(std::move(words));
    weir::telemetry::FlushLog();
    return weir::app::WroteOutput() || exit_code != 0 ? exit_code : 1;
  } catch (const std::exception& error) {
    std::cerr << "weir: " << error.what() << '\n';
    return 1;
  }
}
