#include "remote/remote.h"

#include <cstdlib>
#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "console.h"
#include "remote/json_fields.h"
#include "remote/waits.h"

namespace weir::app {
namespace {

constexpr std::size_t kMessageColumns = 300;

/// Rewords a message in terms of the command line.
std::string InOptions(std::string message) {
  constexpr std::string_view kField = "give a new expiresAt, or null to keep it";
  const std::size_t at = message.find(kField);
  if (at == std::string::npos) return message;
  return message.replace(at, kField.size(), "give --expires with a new time, or --expires never");
}

}  // namespace

void Access::AddTo(Syntax word) {
  word.AddOption("--url", service.url, "URL of the service").Env("WEIR_URL").ShowDefault();
  word.AddOption("--key,--admin-key", service.key, "API key; prefer --key-file or WEIR_ADMIN_KEY");
  word.AddOption("--key-file", key_file, "File with the API key").Env("WEIR_KEY_FILE");
  word.AddOption("--ca", service.ca, "PEM file with the CA certificates to trust, for https")
      .Env("WEIR_CA");
  word.AddOption("--cert", service.cert, "PEM file with the client certificate (mutual TLS)")
      .Env("WEIR_CERT");
  word.AddOption("--cert-key", service.cert_key, "PEM file with its private key")
      .Env("WEIR_CERT_KEY");
  word.AddOption("--timeout", service.timeout_seconds, "Seconds to wait for a response")
      .AllowUnits()
      .Env("WEIR_TIMEOUT")
      .Between(0.01, 86'400.0)
      .ShowDefault();
}

Result<ServiceClient> Access::Open() const {
  ServiceAccess found = service;
  if (found.key.empty() && !key_file.empty()) {
    Result<std::string> line = ReadFirstLine(key_file);
    if (!line.ok()) return Invalid("--key-file " + key_file + ": " + line.error().message);
    found.key = std::move(*line);
  }
  for (const char* name : {"WEIR_ADMIN_KEY", "WEIR_KEY"}) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
    const char* value = found.key.empty() ? std::getenv(name) : nullptr;
    if (value != nullptr) found.key = value;
  }
  return ServiceClient::For(std::move(found));
}

void Remote::AddTo(Syntax word) {
  access.AddTo(word);
  word.AddFlag("--json", json, "Print JSON");
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

int ExitCodeOf(const Error& error) noexcept {
  switch (error.code) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
      return kExitUnreachable;
    case Code::kInvalidArgument:
      return kExitUsage;
    default:
      return kExitRefused;
  }
}

int Fail(const Error& error) {
  std::cerr << "weir: " << Shown(error.message, kMessageColumns) << '\n';
  return ExitCodeOf(error);
}

int FailUnexpected() { return Fail({Code::kUnavailable, "unexpected response"}); }

int FailRefused(const ServiceReply& reply, const std::string& about) {
  std::cerr << "weir: " << (about.empty() ? "" : Shown(about) + ": ") << reply.status << ": "
            << Shown(WithWaits(InOptions(MessageOf(reply.body))), kMessageColumns)
            << (reply.status == 401 ? kKeyHint : "") << '\n';
  if (reply.status >= 500) return kExitUnreachable;
  // What the command line or a file said cannot be right; a retry cannot help.
  return reply.status == 400 ? kExitUsage : kExitRefused;
}

}  // namespace weir::app
