#include "remote/service_client.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/url.h"
#include "console.h"
#include "drivers/curl/handles.h"

namespace weir::app {
namespace {

constexpr int kTimeoutSeconds = 120;
constexpr long kConnectSeconds = 10;
constexpr std::size_t kMaxAnswer = std::size_t{1} << 30U;

std::size_t TakeBody(char* bytes, std::size_t size, std::size_t count, void* reply) {
  std::string& body = static_cast<ServiceReply*>(reply)->body;
  if (body.size() + size * count > kMaxAnswer) return 0;
  body.append(bytes, size * count);
  return size * count;
}

std::size_t TakeHeader(char* bytes, std::size_t size, std::size_t count, void* reply) {
  std::string_view line(bytes, size * count);
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t colon = line.find(": ");
  if (colon == std::string_view::npos) return size * count;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(), Lower);
  static_cast<ServiceReply*>(reply)->headers.emplace_back(std::move(name), line.substr(colon + 2));
  return size * count;
}

/// What went wrong, and what to do about it.
std::string Reason(CURLcode code, const char* detail, double timeout) {
  std::string said = *detail != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_COULDNT_CONNECT:
      return "cannot connect; is `weir serve` running there?";
    case CURLE_OPERATION_TIMEDOUT:
      return "no response within " + std::to_string(timeout) + " s (--timeout)";
    case CURLE_PEER_FAILED_VERIFICATION:
      return said + "; use --ca to give the CA certificate";
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return "the response is not HTTP";
    case CURLE_SSL_CONNECT_ERROR:
      // OpenSSL's words for a first record that is none: 0A00010B, and 0A0000C6 of other versions.
      if (said.find("wrong version number") == said.npos &&
          said.find("packet length too long") == said.npos) {
        return said;
      }
      return "the service answers without TLS: use http://";
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
      return said + "; if the service has TLS, --url must begin with https://";
    default:
      return said;
  }
}

/// The easy interface with the options of every request. Not thread-safe.
class Exchange {
 public:
  bool ok() const { return curl_ != nullptr; }
  template <typename Value>
  void Set(CURLoption option, Value value) {
    curl_easy_setopt(curl_.get(), option, value);
  }
  void SetFile(CURLoption option, const std::string& file) {
    if (!file.empty()) Set(option, file.c_str());
  }
  void AddHeader(const std::string& line) { curl::Append(headers_, line); }

  CURLcode Perform(ServiceReply& reply) {
    Set(CURLOPT_HTTPHEADER, headers_.get());
    Set(CURLOPT_ERRORBUFFER, detail_.data());
    Set(CURLOPT_WRITEFUNCTION, &TakeBody);
    Set(CURLOPT_WRITEDATA, &reply);
    Set(CURLOPT_HEADERFUNCTION, &TakeHeader);
    Set(CURLOPT_HEADERDATA, &reply);
    const CURLcode done = curl_easy_perform(curl_.get());
    long status = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    reply.status = static_cast<int>(status);
    return done;
  }
  /// Whether any part of the request was sent.
  bool sent() const {
    long bytes = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_REQUEST_SIZE, &bytes);
    return bytes > 0;
  }
  const char* detail() const { return detail_.data(); }

 private:
  curl::Handle curl_{curl_easy_init()};
  curl::List headers_;
  std::array<char, CURL_ERROR_SIZE> detail_{};
};

}  // namespace

std::string_view ServiceReply::Header(std::string_view name) const noexcept {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

int ConnectTcp(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return -1;
  int fd = -1;
  for (const addrinfo* at = found; at != nullptr && fd < 0; at = at->ai_next) {
    fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
      close(fd);
      fd = -1;
    }
  }
  freeaddrinfo(found);
  const timeval patience{kTimeoutSeconds, 0};
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  return fd;
}

Result<ServiceClient> ServiceClient::For(ServiceAccess access) {
  std::string& url = access.url;
  while (!url.empty() && url.back() == '/') url.pop_back();
  if (url.find("://") == std::string::npos) url = "http://" + url;
  const Result<Url> parts = ParseUrl(url);
  const bool known = parts.ok() && (parts->scheme == "http" || parts->scheme == "https");
  if (!known || !parts->is_origin()) {
    return Error{
        Code::kInvalidArgument,
        "--url must be like http://127.0.0.1:8080 or https://weir.example:8080, not " + Shown(url)};
  }
  if (access.key.find_first_of("\r\n") != std::string::npos) {
    return Error{Code::kInvalidArgument, "--key must be one line"};
  }
  for (const auto& [option, file] :
       {std::pair("--ca", &access.ca), std::pair("--cert", &access.cert),
        std::pair("--cert-key", &access.cert_key)}) {
    if (file->empty()) continue;
    if (const Result<std::ifstream> opened = OpenFile(*file); !opened.ok()) {
      return Invalid(std::string(option) + " " + *file + ": " + opened.error().message);
    }
  }
  return ServiceClient(std::move(access));
}

Result<ServiceReply> ServiceClient::Send(std::string_view method, std::string_view target,
                                         std::string_view body) const {
  if (const Status ready = curl::Start(); !ready.ok()) return ready.error();
  Exchange exchange;
  if (!exchange.ok()) return Error{Code::kUnavailable, "cannot initialize libcurl"};
  const std::string url = access_.url + std::string(target);
  const std::string verb(method);
  exchange.Set(CURLOPT_URL, url.c_str());
  exchange.Set(CURLOPT_PATH_AS_IS, 1L);
  exchange.Set(CURLOPT_PROTOCOLS_STR, "http,https");
  exchange.Set(CURLOPT_PROXY, "");
  exchange.Set(CURLOPT_NOSIGNAL, 1L);
  exchange.Set(CURLOPT_QUICK_EXIT, 1L);  // does not wait for name servers
  exchange.Set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  exchange.Set(CURLOPT_TIMEOUT_MS, static_cast<long>(access_.timeout_seconds * 1000));
  exchange.SetFile(CURLOPT_CAINFO, access_.ca);
  exchange.SetFile(CURLOPT_SSLCERT, access_.cert);
  exchange.SetFile(CURLOPT_SSLKEY, access_.cert_key);
  if (!body.empty() || method == "POST" || method == "PUT") {
    exchange.Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    exchange.Set(CURLOPT_POSTFIELDS, body.empty() ? "" : body.data());
  }
  exchange.Set(CURLOPT_CUSTOMREQUEST, verb.c_str());
  exchange.AddHeader("Content-Type: application/json");
  exchange.AddHeader("Connection: close");
  exchange.AddHeader("Expect:");
  if (!access_.key.empty()) exchange.AddHeader("X-API-Key: " + access_.key);
  ServiceReply reply;
  const CURLcode done = exchange.Perform(reply);
  // A server may refuse a large body before it has read all of it: the answer counts.
  const bool refused_early = done == CURLE_SEND_ERROR && reply.status >= 400;
  if (done == CURLE_OK || refused_early) return reply;
  if (done == CURLE_SSL_CACERT_BADFILE) {
    return Invalid("--ca " + access_.ca + ": contains no PEM certificate");
  }
  if (done == CURLE_SSL_CERTPROBLEM) {
    return Invalid("--cert or --cert-key: " + Reason(done, exchange.detail(), 0));
  }
  return Error{exchange.sent() ? Code::kDeadlineExceeded : Code::kUnavailable,
               where() + ": " + Reason(done, exchange.detail(), access_.timeout_seconds)};
}

std::string UrlEscaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      AppendPercent(out, c);
    }
  }
  return out;
}

}  // namespace weir::app
