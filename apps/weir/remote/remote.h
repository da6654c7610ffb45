#pragma once

// What all commands that speak to a running service share: where it is, how they fail, and their
// exit codes (docs/reference/cli.md).

#include <functional>
#include <string>
#include <string_view>

#include "remote/service_client.h"
#include "syntax.h"

namespace weir::app {

enum ExitCode : int {
  kExitOk = 0,
  kExitNo = 1,           ///< limited, different, or another answer that is a no
  kExitUsage = 2,        ///< the command line or a file it names is wrong
  kExitUnreachable = 3,  ///< nobody answers, or not as a service would
  kExitRefused = 4,      ///< the service refused: no key, not found, in conflict
};

/// Where the service is and how to get in, as the options and the environment have it.
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

  /// Sends and hands the answer to `show`, unless it is a refusal: then says so. Prints the body
  /// instead if --json was given. Returns the exit code; `show` gives it for an answer of success.
  int Ask(std::string_view method, const std::string& target, std::string_view body,
          const std::function<int(const ServiceReply&)>& show) const;

  /// The same without a word about success or failure: an error holds what is to be said.
  Result<ServiceReply> Exchange(std::string_view method, const std::string& target,
                                std::string_view body = {}) const;
};

/// Says on standard error what went wrong and gives the exit code for it.
int Fail(const Error& error);
/// The same for a response that is not what this program understands.
int FailUnexpected();
/// The same for a refusal of the service, from its body; `about` names what it refuses, if not the
/// command as a whole.
int FailRefused(const ServiceReply& reply, const std::string& about = {});

}  // namespace weir::app
