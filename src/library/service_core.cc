// A Limiter that calls a `weir serve` over HTTP. Connections are kept between calls: a caller takes
// a free one or opens another, and leaves it open for the next.

#include <simdjson.h>

#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/url.h"
#include "drivers/curl/handles.h"
#include "library/limiter_core.h"

namespace weir::library {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{1} << 20U;

std::size_t TakeBytes(char* bytes, std::size_t size, std::size_t count, void* out) {
  auto& body = *static_cast<std::string*>(out);
  if (body.size() + size * count > kMaxAnswer) return 0;
  body.append(bytes, size * count);
  return size * count;
}

using curl::Handle;
using Question = Limiter::Core::Question;

const char* PathOf(const Question& question) {
  switch (question.op) {
    case store::Op::kPeek:
      return "/v1/peek";
    case store::Op::kRefund:
      return "/v1/refund";
    case store::Op::kRelease:
      return "/v1/release";
    case store::Op::kSettle:
      return "/v1/settle";
    default:
      return question.reserve.count() > 0 ? "/v1/reserve" : "/v1/check";
  }
}

std::string BodyOf(const Question& question) {
  const LimitRequest& request = question.request;
  return JsonObject([&](JsonWriter& json) {
    if (question.op == store::Op::kSettle) {
      json.Field("reservation", question.settles);
    } else if (!request.key.empty()) {
      json.Field("key", request.key);
    } else {
      if (!request.domain.empty()) json.Field("domain", request.domain);
      // As a list: an entry may occur twice.
      json.Key("descriptors").BeginArray().BeginArray();
      for (const LimitEntry& entry : request.entries) {
        json.BeginObject().Field("key", entry.key).Field("value", entry.value).EndObject();
      }
      json.EndArray().EndArray();
    }
    if (question.op == store::Op::kRelease) {
      json.Field("leases", question.leases);
    } else {
      json.Field("cost", request.cost);
    }
    if (question.op == store::Op::kOverdraw) json.Field("overdraw", true);
    if (question.reserve.count() > 0) json.Field("expiresAfterMs", question.reserve.count());
  });
}

std::int64_t NumberIn(const simdjson::dom::object& object, std::string_view name) {
  std::int64_t number = 0;
  return object[name].get(number) == simdjson::SUCCESS ? number : 0;
}

bool FlagIn(const simdjson::dom::object& object, std::string_view name) {
  bool flag = false;
  return object[name].get(flag) == simdjson::SUCCESS && flag;
}

std::string TextIn(const simdjson::dom::object& object, std::string_view name) {
  std::string_view text;
  return object[name].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

Limiter::Core::Told ToldOf(const simdjson::dom::object& object) {
  using std::chrono::milliseconds;
  Limiter::Core::Told told;
  Decision& decision = told.answer.decision;
  decision.verdict = FlagIn(object, "allowed") ? Verdict::kAllowed
                     : FlagIn(object, "never") ? Verdict::kNever
                                               : Verdict::kLimited;
  decision.limit = NumberIn(object, "limit");
  decision.remaining = NumberIn(object, "remaining");
  decision.retry_after = milliseconds(NumberIn(object, "retryAfterMs"));
  decision.reset_after = milliseconds(NumberIn(object, "resetAfterMs"));
  decision.lease = NumberIn(object, "lease");
  told.answer.policy = TextIn(object, "policy");
  told.answer.degraded = FlagIn(object, "degraded");
  told.answer.leases = TextIn(object, "leases");
  told.applied = FlagIn(object, "released") || FlagIn(object, "settled");
  told.reservation = TextIn(object, "reservation");
  return told;
}

Code CodeOf(long status) {
  switch (status) {
    case 400:
      return Code::kInvalidArgument;
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 429:
      return Code::kResourceExhausted;
    case 504:
      return Code::kDeadlineExceeded;
    default:
      return Code::kUnavailable;
  }
}

/// Thread safety: as Limiter.
class ServiceCore final : public Limiter::Core {
 public:
  explicit ServiceCore(LimiterOptions options) : options_(std::move(options)) {
    curl::Append(headers_, "Content-Type: application/json");
    curl::Append(headers_, "Expect:");
    if (!options_.service_key.empty()) {
      curl::Append(headers_, "X-API-Key: " + options_.service_key);
    }
  }

  Result<Told> Ask(const Question& question) override {
    Handle handle = Take();
    if (handle == nullptr) return Error{Code::kUnavailable, "cannot initialize libcurl"};
    std::string answer;
    long status = 0;
    // libcurl sends again what was sent on a reused connection that was closed without an answer.
    // It may have been executed already; a refund must not be executed twice.
    const bool once = question.op == store::Op::kRefund;
    curl_easy_setopt(handle.get(), CURLOPT_FRESH_CONNECT, once ? 1L : 0L);
    const Status sent = Send(handle.get(), PathOf(question), BodyOf(question), answer, status);
    Note(sent);
    if (!sent.ok()) return sent.error();
    PutBack(std::move(handle));
    simdjson::dom::parser parser;
    simdjson::dom::object object;
    const bool json = parser.parse(answer).get(object) == simdjson::SUCCESS;
    if (status == 200 && json) return ToldOf(object);
    const std::string said = json ? TextIn(object, "message") : std::string();
    return Error{CodeOf(status), "the service answered " + std::to_string(status) +
                                     (said.empty() ? "" : ": " + said)};
  }

  LimiterPolicies policies() const override { return {}; }

  Status health() const override {
    const std::lock_guard lock(mutex_);
    return health_;
  }

 private:
  Handle Take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        Handle handle = std::move(idle_.back());
        idle_.pop_back();
        return handle;
      }
    }
    Handle handle(curl_easy_init());
    if (handle == nullptr) return handle;
    CURL* const curl = handle.get();
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);  // does not wait for name servers
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &TakeBytes);
    if (!options_.service_ca.empty()) {
      curl_easy_setopt(curl, CURLOPT_CAINFO, options_.service_ca.c_str());
    }
    return handle;
  }

  void PutBack(Handle handle) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < options_.connections) idle_.push_back(std::move(handle));
  }

  Status Send(CURL* curl, const char* path, const std::string& body, std::string& answer,
              long& status) const {
    const std::string url = options_.service + path;
    std::array<char, CURL_ERROR_SIZE> detail{};
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail.data());
    const CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
    if (code == CURLE_OK) return {};
    const std::string why = detail[0] != '\0' ? detail.data() : curl_easy_strerror(code);
    const bool late = code == CURLE_OPERATION_TIMEDOUT;
    return Error{late ? Code::kDeadlineExceeded : Code::kUnavailable,
                 "the service at " + options_.service + " is not responding: " + why};
  }

  void Note(const Status& sent) {
    const std::lock_guard lock(mutex_);
    health_ = sent;
  }

  const LimiterOptions options_;
  curl::List headers_;
  mutable std::mutex mutex_;
  std::vector<Handle> idle_;
  Status health_ = Error{Code::kUnavailable, "not contacted yet"};
};

}  // namespace

Result<std::unique_ptr<Limiter::Core>> OpenService(LimiterOptions options) {
  std::string& url = options.service;
  while (url.ends_with('/')) url.pop_back();
  const Result<Url> parts = ParseUrl(url);
  const bool known = parts.ok() && (parts->scheme == "http" || parts->scheme == "https");
  if (!known || !parts->is_origin()) {
    return Error{Code::kInvalidArgument, "service: expected http://host:port or https://host:port"};
  }
  if (options.service_key.find_first_of("\r\n") != std::string::npos) {
    return Error{Code::kInvalidArgument, "service_key: must be one line"};
  }
  if (const Status ready = curl::Start(); !ready.ok()) return ready.error();
  return std::unique_ptr<Limiter::Core>(std::make_unique<ServiceCore>(std::move(options)));
}

}  // namespace weir::library
