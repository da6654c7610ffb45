#pragma once

// What all commands that talk to a running service share: where it is, how they fail, and their
// exit codes (docs/reference/cli.md).

#include <functional>
#include <string>
#include <string_view>

#include "remote/service_client.h"
#include "syntax.h"

namespace weir::app {

/// Follows the message of a 401.
inline constexpr const char* kKeyHint = " (--key-file FILE, or WEIR_ADMIN_KEY)";

enum ExitCode : int {
  kExitOk = 0,
  kExitNo = 1,           ///< limited, different, or another negative answer
  kExitUsage = 2,        ///< the command line or a file it names is wrong
  kExitUnreachable = 3,  ///< no answer, or not one of a service
  kExitRefused = 4,      ///< the service refused: no key, not found, in conflict
};

/// Where the service is and how to authenticate, from the options and the environment.
///
/// Thread safety: as any value.
struct Access {
  ServiceAccess service;
  std::string key_file = {};

  void AddTo(Syntax word);
  /// The key is that of --key, or of --key-file, or of the environment.
  Result<ServiceClient> Open() const;
};

/// Thread safety: as any value.
struct Remote {
  Access access;
  bool json = false;

  void AddTo(Syntax word);

  /// Sends and passes the answer to `show`, or reports a refusal. Prints the body
  /// instead if --json was given. Returns the exit code; `show` returns it for a success.
  int Ask(std::string_view method, const std::string& target, std::string_view body,
          const std::function<int(const ServiceReply&)>& show) const;

  /// Likewise without printing anything: an error holds what to report.
  Result<ServiceReply> Exchange(std::string_view method, const std::string& target,
                                std::string_view body = {}) const;
};

int ExitCodeOf(const Error& error) noexcept;
/// Prints the error to standard error and returns its exit code.
int Fail(const Error& error);
/// Likewise for a response that this program does not understand.
int FailUnexpected();
/// The same for a refusal of the service, from its body; `about` names what it refuses, if not the
/// command as a whole.
int FailRefused(const ServiceReply& reply, const std::string& about = {});

}  // namespace weir::app
