#include <memory>

#include "command.h"
#include "remote/json_rows.h"
#include "remote/remote.h"

// weir status: whether the service is healthy, and what it has done.

namespace weir::app::status_command {
namespace {

void Configure(Syntax word) {
  auto remote = std::make_shared<Remote>();
  remote->AddTo(word);
  word.OnRun([remote] {
    return remote->Ask("GET", "/admin/status", {}, [&remote](const ServiceReply& reply) -> int {
      return remote->json ? static_cast<int>(kExitOk) : PrintFields(reply.body);
    });
  });
}

const Command kStatus("status", "Show the status of a running service.", Configure);

}  // namespace
}  // namespace weir::app::status_command
