#include "slots/api/large_bodies.h"

#include <exception>
#include <string>
#include <utility>

#include "protocol/http/check_reader.h"
#include "protocol/http/error.h"
#include "telemetry/log.h"

namespace weir::slots {
namespace {

constexpr std::size_t kSmall = 32 * 1024;

}  // namespace

LargeBodies::~LargeBodies() {
  thread_.Finish([] {});
}

void LargeBodies::Read(std::string_view body, http::Reply reply, Then then) {
  if (body.size() <= kSmall) return then(body, std::move(reply));
  std::string copy;
  copy.reserve(body.size() + http::kBodyPadding);
  copy = body;
  thread_.Post([copy = std::move(copy), reply = std::move(reply), then = std::move(then)] {
    try {
      then(copy, reply);
    } catch (const std::exception& error) {
      telemetry::Log(telemetry::Level::kError, "handler failed",
                     {{"error", std::string_view(error.what())}});
      reply(http::ErrorResponse(500, "internal error"));
    }
  });
}

}  // namespace weir::slots
