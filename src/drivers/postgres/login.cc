#include "drivers/postgres/login.h"

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "drivers/postgres/connection.h"
#include "drivers/postgres/url.h"

namespace weir::postgres {

Status CheckLogin(const std::string& url) {
  const Result<Target> target = Target::Parse(url);
  if (!target.ok() || target->Hosts().size() > 1) return {};
  constexpr std::chrono::milliseconds kPatience{1000};
  boost::asio::io_context io(1);
  std::optional<Status> answer;
  Connection connection(io, {.url = url,
                             .connect_timeout = kPatience,
                             .statement_timeout = kPatience,
                             .refused = Code::kUnauthenticated});
  connection.Send("SELECT 1", {}, [&answer](Answer given) { answer = std::move(given.status); });
  while (!answer) {
    io.restart();
    io.run_one();
  }
  if (answer->ok()) return {};
  const Code code = answer->error().code;
  const bool refused = code == Code::kUnauthenticated || code == Code::kPermissionDenied;
  return refused ? std::move(*answer) : Status();
}

}  // namespace weir::postgres
