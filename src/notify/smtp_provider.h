#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "notify/provider.h"
#include "weir/result.h"

namespace weir::notify {

struct SmtpOptions {
  enum class Tls { kTry, kRequired, kOff };

  std::string server = {};    ///< smtp://host:port or smtps://host:port
  std::string user = {};      ///< empty: without authentication
  std::string password = {};  ///< secret
  std::string from = {};      ///< the sender's address
  std::string subject = "Notification";
  Tls tls = Tls::kTry;                      ///< for smtp://, by STARTTLS
  std::string tls_ca = {};                  ///< PEM file of the CAs to trust; empty: the system's
  std::chrono::milliseconds timeout{5000};  ///< for one message, from connecting to its acceptance
};

/// smtp[s]://[user[:password]@]host[:port]/?from=ADDRESS[&subject=TEXT][&tls=required|off]
/// [&tls_ca=FILE]. With a user or a CA, TLS is required unless `tls=off` says otherwise.
Result<SmtpOptions> ParseSmtpUrl(const std::string& url);

/// Delivers each event to a mail server: to the recipient's address, with the event's ID as
/// Message-ID. A temporary refusal (4xx), a lost connection or a timeout may be retried; a
/// permanent refusal (5xx), or a recipient that is not an address, may not.
///
/// Thread-safe: each concurrent call has its own connection, kept alive.
class SmtpProvider final : public Provider {
 public:
  static Result<std::unique_ptr<SmtpProvider>> Open(SmtpOptions options);
  ~SmtpProvider() override;

  Status Deliver(const Event& event) override;

 private:
  class Connections;
  explicit SmtpProvider(SmtpOptions options);

  const SmtpOptions options_;
  std::unique_ptr<Connections> connections_;
};

/// The mail as sent over the wire, header and body.
std::string MailOf(const Event& event, const SmtpOptions& options);

}  // namespace weir::notify
