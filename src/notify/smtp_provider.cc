#include "notify/smtp_provider.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/url.h"
#include "drivers/curl/handles.h"

namespace weir::notify {
namespace {

Error BadUrl(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group <<= 8U;
      if (i + j < bytes.size()) group |= static_cast<unsigned char>(bytes[i + j]);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      const bool padding = i + j > bytes.size();
      out += padding ? '=' : kDigits[group >> (18U - 6U * j) & 63U];
    }
  }
  return out;
}

// Whether it can be used in a header and a command without quoting.
bool IsAddress(std::string_view text) {
  const std::size_t at = text.rfind('@');
  return at != std::string_view::npos && at > 0 && at + 1 < text.size() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return c > ' ' && c != 0x7F && std::strchr("<>,;:\"()[]\\", c) == nullptr;
         });
}

std::string MailDate(Micros time) {
  const std::time_t seconds = time / 1'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  // The names of days and months do not depend on the locale, since the program sets none.
  std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S +0000", &parts);
  return text.data();
}

struct Unsent {
  std::string_view text;
};

std::size_t ReadMail(char* buffer, std::size_t size, std::size_t count, void* from) {
  auto& unsent = *static_cast<Unsent*>(from);
  const std::size_t bytes = std::min(size * count, unsent.text.size());
  std::copy_n(unsent.text.begin(), bytes, buffer);
  unsent.text.remove_prefix(bytes);
  return bytes;
}

std::size_t IgnoreAnswer(char* /*bytes*/, std::size_t size, std::size_t count, void* /*to*/) {
  return size * count;
}

// Whether a refusal concerns the server or this client, not this mail: the greeting or the hello
// was refused, or TLS or a password is missing. That may be fixed; a mailbox
// that does not exist will not appear.
bool ServesNobody(CURLcode done, long status, bool began) {
  constexpr long kAuthenticationRequired = 530;
  return done == CURLE_LOGIN_DENIED || done == CURLE_REMOTE_ACCESS_DENIED ||
         done == CURLE_USE_SSL_FAILED || status == kAuthenticationRequired ||
         (done == CURLE_WEIRD_SERVER_REPLY && !began);
}

Status SetParameter(SmtpOptions& options, std::string_view name, const std::string& value) {
  if (name == "from") {
    if (!IsAddress(value)) return BadUrl("from must be an e-mail address");
    options.from = value;
  } else if (name == "subject") {
    if (value.empty() || value.size() > 200) return BadUrl("subject must have 1 to 200 bytes");
    options.subject = value;
  } else if (name == "tls" && (value == "required" || value == "off")) {
    options.tls = value == "off" ? SmtpOptions::Tls::kOff : SmtpOptions::Tls::kRequired;
  } else if (name == "tls_ca") {
    if (access(value.c_str(), R_OK) != 0) return BadUrl("cannot read tls_ca '" + value + "'");
    options.tls_ca = value;
  } else {
    return BadUrl("unknown parameter '" + std::string(name) +
                  "'; known: from, subject, tls=required|off and tls_ca");
  }
  return {};
}

}  // namespace

Result<SmtpOptions> ParseSmtpUrl(const std::string& url) {
  const std::string form = "an SMTP URL must look like smtp://host:25/?from=weir@example.com: ";
  Result<Url> parts = ParseUrl(url);
  if (!parts.ok()) return BadUrl(form + parts.error().message);
  if (parts->scheme != "smtp" && parts->scheme != "smtps") return BadUrl(form + "scheme");
  if (parts->hosts.size() != 1) return BadUrl(form + "expected one host");
  SmtpOptions options;
  if (parts->has_user) {
    options.user = std::move(parts->user);
    options.password = std::move(parts->password);
    options.tls = SmtpOptions::Tls::kRequired;
  }
  const UrlHost& host = parts->hosts[0];
  const std::uint16_t port = host.port != 0 ? host.port : parts->scheme == "smtps" ? 465 : 25;
  options.server = parts->scheme + "://" + JoinHostPort(host.name, port);
  for (const auto& [name, value] : parts->options) {
    Status set = SetParameter(options, name, value);
    if (!set.ok()) return BadUrl(form + set.error().message);
  }
  if (options.from.empty()) return BadUrl(form + "from is missing");
  if (!options.tls_ca.empty() && options.tls == SmtpOptions::Tls::kTry) {
    options.tls = SmtpOptions::Tls::kRequired;
  }
  return options;
}

std::string MailOf(const Event& event, const SmtpOptions& options) {
  const std::string host = options.from.substr(options.from.rfind('@') + 1);
  std::string mail = "Date: " + MailDate(event.created_at) + "\r\n";
  mail += "From: <" + options.from + ">\r\nTo: <" + event.to() + ">\r\n";
  mail += "Message-ID: <" + event.id + "@" + host + ">\r\n";
  mail += "Subject: =?utf-8?B?" + Base64(options.subject) + "?=\r\n";
  mail += "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n";
  mail += "Content-Transfer-Encoding: base64\r\n\r\n";
  constexpr std::size_t kLine = 76;
  const std::string body = Base64(event.message);
  for (std::size_t i = 0; i < body.size(); i += kLine) mail += body.substr(i, kLine) + "\r\n";
  return mail;
}

class SmtpProvider::Connections : public curl::Connections {};

SmtpProvider::SmtpProvider(SmtpOptions options)
    : options_(std::move(options)), connections_(std::make_unique<Connections>()) {}
SmtpProvider::~SmtpProvider() = default;

Result<std::unique_ptr<SmtpProvider>> SmtpProvider::Open(SmtpOptions options) {
  if (Status ready = curl::Start(); !ready.ok()) return ready.error();
  return std::unique_ptr<SmtpProvider>(new SmtpProvider(std::move(options)));
}

Status SmtpProvider::Deliver(const Event& event) {
  if (!IsAddress(event.to())) {
    return Error{Code::kInvalidArgument, "the recipient is not an e-mail address"};
  }
  curl::Handle handle = connections_->Take();
  if (!handle) return Error{Code::kUnavailable, "out of memory"};
  const std::string mail = MailOf(event, options_);
  Unsent unsent{mail};
  curl::List recipients;
  curl::Append(recipients, "<" + event.to() + ">");
  const std::string from = "<" + options_.from + ">";
  const long tls = options_.tls == SmtpOptions::Tls::kOff        ? CURLUSESSL_NONE
                   : options_.tls == SmtpOptions::Tls::kRequired ? CURLUSESSL_ALL
                                                                 : CURLUSESSL_TRY;
  CURL* easy = handle.get();
  std::array<char, CURL_ERROR_SIZE> why{};
  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_URL, options_.server.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  curl_easy_setopt(easy, CURLOPT_USE_SSL, tls);
  if (!options_.tls_ca.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options_.tls_ca.c_str());
  if (!options_.user.empty()) {
    curl_easy_setopt(easy, CURLOPT_USERNAME, options_.user.c_str());
    curl_easy_setopt(easy, CURLOPT_PASSWORD, options_.password.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_MAIL_FROM, from.c_str());
  curl_easy_setopt(easy, CURLOPT_MAIL_RCPT, recipients.get());
  curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(easy, CURLOPT_READFUNCTION, ReadMail);
  curl_easy_setopt(easy, CURLOPT_READDATA, &unsent);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, IgnoreAnswer);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // does not wait for name servers
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why.data());
  const CURLcode done = curl_easy_perform(easy);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, nullptr);
  if (done == CURLE_OK) {
    connections_->GiveBack(std::move(handle));
    return {};
  }
  if (status >= 500 && status < 600 &&
      !ServesNobody(done, status, unsent.text.size() < mail.size())) {
    return Error{Code::kInvalidArgument, "the mail server answered " + std::to_string(status)};
  }
  if (status >= 400) {
    return Error{Code::kUnavailable, "the mail server answered " + std::to_string(status)};
  }
  if (done == CURLE_OPERATION_TIMEDOUT) {
    return Error{Code::kDeadlineExceeded, "the mail server timed out"};
  }
  return Error{Code::kUnavailable, std::string("cannot reach the mail server: ") +
                                       (why[0] != '\0' ? why.data() : curl_easy_strerror(done))};
}

}  // namespace weir::notify
