#include "remote/remote.h"

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "console.h"
#include "remote/json_fields.h"

namespace weir::app {
namespace {

constexpr std::size_t kMessageColumns = 300;

}  // namespace

void Access::AddTo(CLI::App& word) {
  word.add_option("--url", service.url, "The service")->envname("WEIR_URL")->capture_default_str();
  word.add_option("--key,--admin-key", service.key,
                  "Its admin key; better in a file or in WEIR_ADMIN_KEY");
  word.add_option("--key-file", key_file, "A file with the admin key")->envname("WEIR_KEY_FILE");
  word.add_option("--ca", service.ca, "PEM file of the authority to trust, for https")
      ->envname("WEIR_CA");
  word.add_option("--cert", service.cert, "PEM file to show the service (mutual TLS)")
      ->envname("WEIR_CERT");
  word.add_option("--cert-key", service.cert_key, "PEM file with its private key")
      ->envname("WEIR_CERT_KEY");
  word.add_option("--timeout", service.timeout_seconds, "Seconds to wait for an answer")
      ->envname("WEIR_TIMEOUT")
      ->check(CLI::Range(0.01, 86'400.0))
      ->capture_default_str();
}

Result<ServiceClient> Access::Open() const {
  ServiceAccess found = service;
  if (found.key.empty() && !key_file.empty()) {
    std::ifstream file(key_file);
    if (!std::getline(file, found.key)) {
      return Error{Code::kInvalidArgument, "--key-file: cannot read a key from " + key_file};
    }
    if (found.key.ends_with('\r')) found.key.pop_back();
  }
  for (const char* name : {"WEIR_ADMIN_KEY", "WEIR_KEY"}) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
    const char* value = found.key.empty() ? std::getenv(name) : nullptr;
    if (value != nullptr) found.key = value;
  }
  return ServiceClient::For(std::move(found));
}

void Remote::AddTo(CLI::App& word) {
  access.AddTo(word);
  word.add_flag("--json", json, "Print JSON, for scripts");
}

Result<ServiceReply> Remote::Exchange(std::string_view method, const std::string& target,
                                      std::string_view body) const {
  Result<ServiceClient> client = access.Open();
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
