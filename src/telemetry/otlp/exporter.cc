#include "telemetry/otlp/exporter.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/blocking.h"
#include "base/url.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

namespace weir::telemetry::otlp {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view kGrpcPath =
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
constexpr std::string_view kHttpPath = "/v1/traces";
constexpr std::size_t kMaxAnswer = std::size_t{64} << 10U;
constexpr std::size_t kGrpcPrefix = 5;
constexpr milliseconds kLook{100};           // how often the queue is checked
constexpr milliseconds kLastTimeout{1'000};  // for all remaining spans at shutdown

/// Prefixes the message with one byte "not compressed" and its length.
std::string Framed(const std::string& message) {
  std::string framed(kGrpcPrefix, '\0');
  for (std::size_t i = 0; i < 4; ++i) {
    framed[1 + i] = static_cast<char>((message.size() >> (24 - 8 * i)) & 0xffU);
  }
  return framed + message;
}

struct Answer {
  std::string body;
  int grpc_status = -1;  // -1: not received
};

std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* to) {
  std::string& body = static_cast<Answer*>(to)->body;
  body.append(data, std::min(size * count, kMaxAnswer - std::min(kMaxAnswer, body.size())));
  return size * count;
}

/// Also called for trailers.
std::size_t OnField(char* data, std::size_t size, std::size_t count, void* to) {
  constexpr std::string_view kName = "grpc-status: ";
  const std::string_view line(data, size * count);
  if (line.starts_with(kName)) {
    const std::string_view value = line.substr(kName.size());
    std::from_chars(value.data(), value.data() + value.size(),
                    static_cast<Answer*>(to)->grpc_status);
  }
  return size * count;
}

/// A receiver that does not answer must not hold up the end of the program. libcurl looks here at
/// least once a second.
int OnProgress(void* give_up_at, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& end = *static_cast<const std::atomic<steady_clock::time_point>*>(give_up_at);
  return steady_clock::now() >= end.load() ? 1 : 0;
}

struct FreeList {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};

}  // namespace

Result<Endpoint> Endpoint::Parse(const std::string& text) {
  const Result<Url> url = ParseUrl(text);
  const std::string_view scheme = SchemeOf(text);
  const bool known = scheme == "http" || scheme == "https" || scheme == "grpc" || scheme == "grpcs";
  if (!url.ok() || !known || url->hosts.size() != 1) {
    return Error{Code::kInvalidArgument,
                 "expected http://, https://, grpc:// or grpcs:// with a host and port"};
  }
  Endpoint endpoint;
  endpoint.grpc = scheme.starts_with("grpc");
  endpoint.tls = scheme.ends_with("s");
  if (endpoint.grpc && !url->path.empty()) {
    return Error{Code::kInvalidArgument, "a grpc:// endpoint has no path"};
  }
  std::string rest = text.substr(scheme.size());
  while (rest.ends_with('/')) rest.pop_back();
  if (endpoint.grpc) {
    rest += kGrpcPath;
  } else if (url->path.empty()) {
    rest += kHttpPath;
  }
  endpoint.url = (endpoint.tls ? "https" : "http") + rest;
  return endpoint;
}

/// Requests to the receiver. Used on the exporter's thread only.
struct Exporter::Sender {
  Sender(const ExporterOptions& given, const std::atomic<Moment>& end)
      : options(given), give_up_at(end), curl(curl_easy_init()) {
    const bool grpc = options.endpoint.grpc;
    AddHeader(grpc ? "Content-Type: application/grpc" : "Content-Type: application/x-protobuf");
    AddHeader("Expect:");
    if (grpc) AddHeader("TE: trailers");
    for (const std::string& header : options.headers) AddHeader(header.c_str());
  }
  ~Sender() { curl_easy_cleanup(curl); }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  void AddHeader(const char* line) { fields.reset(curl_slist_append(fields.release(), line)); }

  Result<Answer> Post(const std::string& body) {
    MayBlock("exporting traces");
    if (curl == nullptr) return Error{Code::kInternal, "cannot initialize libcurl"};
    const auto left = std::chrono::ceil<milliseconds>(give_up_at.load() - steady_clock::now());
    if (left <= milliseconds(0)) return Error{Code::kUnavailable, "the program is stopping"};
    Answer answer;
    const bool grpc = options.endpoint.grpc;
    const long version = !grpc                  ? CURL_HTTP_VERSION_1_1
                         : options.endpoint.tls ? CURL_HTTP_VERSION_2TLS
                                                : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
    curl_easy_setopt(curl, CURLOPT_URL, options.endpoint.url.c_str());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, version);
    // libcurl 7.88 cannot reuse an HTTP/2 connection that began with prior knowledge; one per
    // batch costs little.
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, grpc ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);  // does not wait for name servers
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                     static_cast<long>(std::min(left, options.timeout).count()));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields.get());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &OnBody);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &OnField);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &answer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &OnProgress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &give_up_at);
    const CURLcode code = curl_easy_perform(curl);
    if (code != CURLE_OK) return Error{Code::kUnavailable, curl_easy_strerror(code)};
    return answer;
  }

  /// How many spans the receiver refused, or why the export failed. kUnavailable: worth a retry.
  Result<std::int64_t> Export(const std::vector<Span>& spans) {
    const std::string message = Encode(options.origin, spans);
    const bool grpc = options.endpoint.grpc;
    const Result<Answer> answer = Post(grpc ? Framed(message) : message);
    if (!answer.ok()) return answer.error();
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) {
      const bool later = status == 429 || status == 502 || status == 503 || status == 504;
      return Error{later ? Code::kUnavailable : Code::kInvalidArgument,
                   "the receiver answered HTTP " + std::to_string(status)};
    }
    if (!grpc) return RejectedSpans(answer->body);
    constexpr int kUnavailable = 14;
    constexpr int kResourceExhausted = 8;
    if (answer->grpc_status != 0) {
      const bool later = answer->grpc_status == kUnavailable ||
                         answer->grpc_status == kResourceExhausted || answer->grpc_status < 0;
      return Error{later ? Code::kUnavailable : Code::kInvalidArgument,
                   "the receiver answered gRPC status " + std::to_string(answer->grpc_status)};
    }
    const std::string_view body = answer->body;
    return RejectedSpans(body.substr(std::min(kGrpcPrefix, body.size())));
  }

  const ExporterOptions& options;
  const std::atomic<Moment>& give_up_at;
  CURL* const curl;
  std::unique_ptr<curl_slist, FreeList> fields;
};

Exporter::Exporter(Tracer& tracer, ExporterOptions options)
    : tracer_(tracer),
      options_(std::move(options)),
      sender_(std::make_unique<Sender>(options_, give_up_at_)),
      thread_([this] { Run(); }) {}

Exporter::~Exporter() { Stop(); }

void Exporter::Stop() {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping()) give_up_at_ = steady_clock::now() + kLastTimeout;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

/// Returns false when it is time to stop.
bool Exporter::Pause(milliseconds time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return stopping(); });
}

void Exporter::Run() {
  std::vector<Span> spans;
  auto sent_at = steady_clock::now();
  bool running = true;
  while (running) {
    running = Pause(std::min(kLook, options_.interval));
    const auto now = steady_clock::now();
    const bool due = now - sent_at >= options_.interval || tracer_.waiting() >= options_.batch;
    if (running && !due) continue;
    sent_at = now;
    do {
      spans.clear();
      tracer_.Take(spans, options_.batch);
      if (!spans.empty()) Send(spans);
    } while (spans.size() == options_.batch);
  }
}

void Exporter::Send(const std::vector<Span>& spans) {
  milliseconds pause = options_.backoff;
  for (int attempt = 1;; ++attempt) {
    const bool last = stopping();
    const Result<std::int64_t> rejected = sender_->Export(spans);
    if (rejected.ok()) {
      const auto refused = std::min(static_cast<std::uint64_t>(*rejected), spans.size());
      failed_.fetch_add(refused, std::memory_order_relaxed);
      exported_.fetch_add(spans.size() - refused, std::memory_order_relaxed);
      if (std::exchange(away_, false)) Log(Level::kInfo, "exporting traces again");
      return;
    }
    if (!std::exchange(away_, true)) {
      Log(Level::kWarn, "cannot export traces; some will be lost",
          {{"error", std::string_view(rejected.error().message)}});
    }
    const bool again = rejected.error().code == Code::kUnavailable && !last;
    if (!again || attempt >= options_.attempts) break;
    Pause(pause);  // Stop ends it, for the last attempt
    pause *= 2;
  }
  failed_.fetch_add(spans.size(), std::memory_order_relaxed);
}

void Exporter::Collect(TextWriter& out) const {
  out.Counter("weir_trace_spans_exported_total", "Spans accepted by the receiver.");
  out.Sample(exported());
  out.Counter("weir_trace_spans_dropped_total", "Spans lost, by reason.");
  const Label queue{"reason", "queue"};
  const Label refused{"reason", "export"};
  out.Sample(tracer_.dropped(), {&queue, 1});
  out.Sample(failed(), {&refused, 1});
}

}  // namespace weir::telemetry::otlp
