#include "drivers/xds/grpc_stream.h"

#include <curl/curl.h>

#include <algorithm>

#include "base/blocking.h"

namespace weir::xds {
namespace {

constexpr std::size_t kPrefix = 5;  // one byte "not compressed", then the length
// Our messages are short, except for a nonce that the server chooses.
constexpr std::size_t kMaxUnsent = std::size_t{1} << 20U;
constexpr long kConnectSeconds = 10;
// A server that died silently is noticed by the kernel's probes.
constexpr long kProbeAfterSeconds = 20;
constexpr long kProbeEverySeconds = 10;

std::uint32_t LengthAt(std::string_view bytes) {
  std::uint32_t length = 0;
  for (std::size_t i = 1; i < kPrefix; ++i) {
    length = (length << 8U) | static_cast<unsigned char>(bytes[i]);
  }
  return length;
}

/// Null if libcurl cannot be initialized. Its global state is set up once, whichever thread is
/// first.
CURLM* NewMulti() {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  return ready == CURLE_OK ? curl_multi_init() : nullptr;
}

struct FreeList {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};

}  // namespace

struct GrpcStream::Call {
  Call(const Server& given, std::string_view path)
      : server(given), multi(NewMulti()), easy(curl_easy_init()) {
    if (multi == nullptr || easy == nullptr) return;
    const bool tls = server.url.starts_with("grpcs://");
    const std::size_t host = server.url.find("://") + 3;
    url = (tls ? "https://" : "http://") + server.url.substr(std::min(host, server.url.size()));
    while (url.ends_with('/')) url.pop_back();
    url += path;
    for (const char* line : {"Content-Type: application/grpc", "TE: trailers", "Expect:"}) {
      AddHeader(line);
    }
    for (const std::string& header : server.headers) AddHeader(header.c_str());
    Configure(tls);
    curl_multi_add_handle(multi, easy);
  }

  ~Call() {
    if (multi != nullptr && easy != nullptr) curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void AddHeader(const char* line) { fields.reset(curl_slist_append(fields.release(), line)); }

  void Configure(bool tls) {
    const long version = tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, version);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // does not wait for name servers
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, kProbeAfterSeconds);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, kProbeEverySeconds);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields.get());
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, &Call::OnRoom);
    curl_easy_setopt(easy, CURLOPT_READDATA, this);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Call::OnBytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Call::OnField);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
    if (!server.ca.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, server.ca.c_str());
    if (!server.certificate.empty()) {
      curl_easy_setopt(easy, CURLOPT_SSLCERT, server.certificate.c_str());
      curl_easy_setopt(easy, CURLOPT_SSLKEY, server.key.c_str());
    }
  }

  /// libcurl can send. With nothing to send the upload pauses, since its end would end the
  /// call.
  static std::size_t OnRoom(char* room, std::size_t size, std::size_t count, void* self) {
    Call& call = *static_cast<Call*>(self);
    const std::size_t taken = std::min(size * count, call.output.size());
    if (taken == 0) {
      call.paused = true;
      return CURL_READFUNC_PAUSE;
    }
    call.output.copy(room, taken);
    call.output.erase(0, taken);
    return taken;
  }

  static std::size_t OnBytes(char* data, std::size_t size, std::size_t count, void* self) {
    Call& call = *static_cast<Call*>(self);
    if (call.unread().size() + size * count > kMaxMessage + kPrefix) return 0;
    call.input.append(data, size * count);
    return size * count;
  }

  /// Also receives the trailers.
  static std::size_t OnField(char* data, std::size_t size, std::size_t count, void* self) {
    constexpr std::string_view kStatus = "grpc-status: ";
    constexpr std::string_view kMessage = "grpc-message: ";
    Call& call = *static_cast<Call*>(self);
    std::string_view line(data, size * count);
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(kStatus)) call.status = line.substr(kStatus.size());
    if (line.starts_with(kMessage)) call.message = line.substr(kMessage.size());
    return size * count;
  }

  std::string_view unread() const { return std::string_view(input).substr(taken); }

  /// Messages are taken off the front; moving the rest for each would take long if there are many.
  void Take(std::size_t size) {
    taken += size;
    if (taken < input.size() / 2) return;
    input.erase(0, taken);
    taken = 0;
  }

  Error WhyOver(CURLcode code) const {
    if (unread().size() > kMaxMessage) {
      return Error{Code::kUnavailable, "a message is larger than 64 MiB"};
    }
    long http = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &http);
    if (code != CURLE_OK) return Error{Code::kUnavailable, curl_easy_strerror(code)};
    if (http != 200) {
      return Error{Code::kUnavailable, "the server answered HTTP " + std::to_string(http)};
    }
    if (status.empty() || status == "0") {
      return Error{Code::kUnavailable, "the server ended the stream"};
    }
    return Error{Code::kUnavailable, "the server ended the stream with gRPC status " + status +
                                         (message.empty() ? "" : ": " + message)};
  }

  const Server server;
  CURLM* const multi;
  CURL* const easy;
  std::string url;
  std::unique_ptr<curl_slist, FreeList> fields;
  std::string output;
  std::string input;
  std::size_t taken = 0;  // bytes of input already consumed
  std::string status;
  std::string message;
  bool paused = false;
};

GrpcStream::GrpcStream(const Server& server, std::string_view path)
    : call_(std::make_unique<Call>(server, path)) {}

GrpcStream::~GrpcStream() = default;

void GrpcStream::Send(std::string_view message) {
  call_->output += '\0';
  for (std::size_t i = 0; i < 4; ++i) {
    call_->output += static_cast<char>((message.size() >> (24 - 8 * i)) & 0xffU);
  }
  call_->output += message;
  if (!call_->paused) return;
  call_->paused = false;
  curl_easy_pause(call_->easy, CURLPAUSE_CONT);
}

std::optional<std::string> GrpcStream::Next() {
  const std::string_view unread = call_->unread();
  if (unread.size() < kPrefix) return std::nullopt;
  const std::size_t length = LengthAt(unread);
  if (unread.size() < kPrefix + length) return std::nullopt;
  std::string message(unread.substr(kPrefix, length));
  call_->Take(kPrefix + length);
  return message;
}

Status GrpcStream::Wait(std::chrono::milliseconds longest) {
  MayBlock("waiting for a control plane");
  Call& call = *call_;
  if (call.multi == nullptr || call.easy == nullptr) {
    return Error{Code::kInternal, "cannot initialize libcurl"};
  }
  int running = 0;
  const std::size_t before = call.input.size();
  CURLMcode code = curl_multi_perform(call.multi, &running);
  if (code == CURLM_OK && running != 0 && call.input.size() == before) {
    code = curl_multi_poll(call.multi, nullptr, 0, static_cast<int>(longest.count()), nullptr);
    if (code == CURLM_OK) code = curl_multi_perform(call.multi, &running);
  }
  if (code != CURLM_OK) return Error{Code::kUnavailable, curl_multi_strerror(code)};
  if (call.unread().size() >= kPrefix && call.unread()[0] != '\0') {
    return Error{Code::kUnavailable, "the server sent a compressed message"};
  }
  if (call.output.size() > kMaxUnsent) {
    return Error{Code::kUnavailable, "the server does not read what it is told"};
  }
  if (running != 0) return {};
  int left = 0;
  const CURLMsg* over = curl_multi_info_read(call.multi, &left);
  return call.WhyOver(over == nullptr ? CURLE_OK : over->data.result);
}

void GrpcStream::Wake() { curl_multi_wakeup(call_->multi); }

}  // namespace weir::xds
