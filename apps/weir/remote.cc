#include "remote.h"

#include <iostream>

#include "console.h"
#include "json_fields.h"

namespace weir::app {
namespace {

constexpr std::size_t kMessageColumns = 300;

}  // namespace

void Remote::AddTo(CLI::App& word) {
  word.add_option("--url", url, "The service")->envname("WEIR_URL")->capture_default_str();
  word.add_option("--key", key, "Its admin key")->envname("WEIR_ADMIN_KEY");
  word.add_flag("--json", json, "Print JSON, for scripts");
}

Result<ServiceReply> Remote::Exchange(std::string_view method, const std::string& target,
                                      std::string_view body) const {
  Result<ServiceClient> client = ServiceClient::For(url, key);
  if (!client.ok()) return client.error();
  return client->Send(method, target, body);
}

int Remote::Ask(std::string_view method, const std::string& target, std::string_view body,
                const std::function<int(const ServiceReply&)>& show) const {
  Result<ServiceReply> reply = Exchange(method, target, body);
  if (!reply.ok()) return Fail(reply.error());
  if (!reply->ok()) return FailRefused(*reply);
  if (json && !reply->body.empty()) std::cout << reply->body << '\n';
  return show(*reply);
}

int Fail(const Error& error) {
  std::cerr << "weir: " << Shown(error.message, kMessageColumns) << '\n';
  switch (error.code) {
    case Code::kUnavailable:
      return kExitUnreachable;
    case Code::kInvalidArgument:
      return kExitUsage;
    default:
      return kExitRefused;
  }
}

int FailRefused(const ServiceReply& reply) {
  std::cerr << "weir: " << reply.status << ": " << Shown(MessageOf(reply.body), kMessageColumns)
            << '\n';
  return reply.status >= 500 ? kExitUnreachable : kExitRefused;
}

}  // namespace weir::app
