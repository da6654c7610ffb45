#include "slots/api/large_bodies.h"

#include <sys/resource.h>

#include <exception>
#include <utility>

#include "protocol/http/error.h"
#include "telemetry/log.h"

namespace weir::slots {
namespace {

constexpr std::size_t kSmall = 32 * 1024;
/// About a ninth of a reactor's share of a contended processor.
constexpr int kNice = 10;

}  // namespace

LargeBodies::LargeBodies() {
  thread_->Start();
  // On Linux, this affects the calling thread only. If it is refused, only speed is lost.
  thread_->Post([] { (void)setpriority(PRIO_PROCESS, 0, kNice); });
}

LargeBodies::~LargeBodies() {
  if (thread_) thread_->Finish([] {});
}

void LargeBodies::Read(std::string_view body, http::Reply reply, Then then) {
  if (body.size() <= kSmall) return then(body, std::move(reply));
  if (!thread_) return;
  thread_->Post([body, reply = std::move(reply), then = std::move(then)] {
    try {
      then(body, reply);
    } catch (const std::exception& error) {
      telemetry::Log(telemetry::Level::kError, "handler failed",
                     {{"error", std::string_view(error.what())}});
      reply(http::ErrorResponse(500, "internal error"));
    }
  });
}

}  // namespace weir::slots
