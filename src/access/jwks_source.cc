#include "access/jwks_source.h"

#include <curl/curl.h>

#include <chrono>
#include <utility>

#include "base/blocking.h"
#include "base/error.h"
#include "base/file.h"
#include "base/url.h"
#include "telemetry/log.h"

namespace weir::access {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::chrono::seconds kEvery{300};
constexpr std::chrono::seconds kAgain{10};  // after a failure
constexpr long kTimeout = 10;               // seconds

bool IsUrl(const std::string& where) { return where.starts_with("https://"); }

std::size_t Take(char* data, std::size_t size, std::size_t count, void* to) {
  auto& text = *static_cast<std::string*>(to);
  if (text.size() + size * count > kMaxBytes) return 0;
  text.append(data, size * count);
  return size * count;
}

/// An issuer that does not answer must not hold up the end of the program. libcurl looks here at
/// least once a second.
int OnProgress(void* stopping, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(stopping)->load() ? 1 : 0;
}

Result<std::string> Fetch(const std::string& url, const std::string& ca,
                          const std::atomic<bool>& stopping) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle(curl_easy_init(),
                                                                   &curl_easy_cleanup);
  if (!handle) return Error{Code::kInternal, "cannot initialize libcurl"};
  std::string text;
  CURL* curl = handle.get();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
  if (!ca.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, ca.c_str());
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, kTimeout);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);  // does not wait for name servers
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Take);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &text);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &OnProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &stopping);
  const CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK) {
    return Error{Code::kUnavailable, WithoutSecrets(url) + ": " + curl_easy_strerror(code)};
  }
  return text;
}

Result<std::string> ReadKeys(const std::string& path) {
  Result<std::string> text = ReadFile(path, kMaxBytes);
  if (!text.ok()) return Error{text.error().code, path + ": " + text.error().message};
  return text;
}

void Complain(const Error& error) {
  telemetry::Log(telemetry::Level::kError, "cannot load the issuer's keys; will retry",
                 {{"error", std::string_view(error.message)}});
}

}  // namespace

Result<std::unique_ptr<JwksSource>> JwksSource::Open(std::string where, std::string ca,
                                                     Tokens& tokens) {
  if (!ca.empty()) {
    // Otherwise it would be taken for an issuer that is down.
    const Result<std::ifstream> opened = OpenFile(ca);
    if (!opened.ok()) return Invalid("oidc.jwks_ca: " + ca + ": " + opened.error().message);
  }
  std::unique_ptr<JwksSource> source(new JwksSource(std::move(where), std::move(ca), tokens));
  const Status read = source->Read();
  if (!read.ok() && !IsUrl(source->where_)) return read.error();
  if (!read.ok()) Complain(read.error());
  tokens.OnUnknownKey([raw = source.get()] { raw->Hurry(); });
  source->thread_ = std::thread([raw = source.get(), good = read.ok()] { raw->Loop(good); });
  return source;
}

JwksSource::~JwksSource() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status JwksSource::Read() {
  MayBlock("reading an issuer's keys");
  const Result<std::string> text = IsUrl(where_) ? Fetch(where_, ca_, stopping_) : ReadKeys(where_);
  if (!text.ok()) return Error{text.error().code, "oidc.jwks: " + text.error().message};
  const Status loaded = tokens_.Load(*text);
  if (!loaded.ok()) return Error{loaded.error().code, "oidc.jwks: " + loaded.error().message};
  return {};
}

void JwksSource::Hurry() {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = true;
  }
  stopped_.notify_all();
}

void JwksSource::Loop(bool good) {
  std::unique_lock lock(mutex_);
  for (;;) {
    // Anyone can send tokens with unknown key IDs: the issuer is not queried more often for that.
    if (stopped_.wait_for(lock, kAgain, [this] { return stopping_.load(); })) return;
    const auto rest = good ? kEvery - kAgain : std::chrono::seconds(0);
    if (stopped_.wait_for(lock, rest, [this] { return stopping_ || wanted_; }) && stopping_) return;
    wanted_ = false;
    lock.unlock();
    const Status read = Read();
    good = read.ok();
    if (!good && !stopping_) Complain(read.error());
    lock.lock();
  }
}

}  // namespace weir::access
