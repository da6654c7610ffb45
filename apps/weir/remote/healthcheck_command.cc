#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>

#include "command.h"
#include "drivers/curl/handles.h"

namespace weir::app::healthcheck_command {
namespace {

constexpr const char* kFooter =
    R"(For containers that have no curl: exits with 0 if healthy, else with 1 and the reason.

  weir healthcheck                                       a service on 127.0.0.1:8080
  weir healthcheck --url http://127.0.0.1:9000/healthz   another one
  weir healthcheck --file weir-sender/heartbeat          a sender: it polled recently
)";

struct HealthOptions {
  std::string url = "http://127.0.0.1:8080/readyz";
  std::string file;
  std::int64_t seconds = 30;
};

/// Adds /readyz if it has no path: other pages of a service answer whatever its state.
std::string WithPath(std::string url) {
  const std::size_t scheme = url.find("://");
  const std::size_t host = scheme == std::string::npos ? 0 : scheme + 3;
  const std::size_t path = url.find_first_of("/?#", host);
  if (path == std::string::npos) return url + "/readyz";
  return path + 1 == url.size() && url[path] == '/' ? url + "readyz" : url;
}

std::size_t Discard(char* /*bytes*/, std::size_t size, std::size_t count, void* /*unused*/) {
  return size * count;
}

/// Empty if all is well.
std::string AskUrl(const HealthOptions& options) {
  constexpr long kTimeoutSeconds = 3;
  const curl::Handle curl(curl_easy_init());
  if (!curl) return "cannot initialize libcurl";
  curl_easy_setopt(curl.get(), CURLOPT_URL, options.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, kTimeoutSeconds);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_QUICK_EXIT, 1L);  // does not wait for name servers
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, Discard);
  const CURLcode done = curl_easy_perform(curl.get());
  if (done != CURLE_OK) return options.url + ": " + curl_easy_strerror(done);
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status == 200) return "";
  return options.url + " answered " + std::to_string(status);
}

std::string AskFile(const HealthOptions& options) {
  std::error_code failed;
  const auto written = std::filesystem::last_write_time(options.file, failed);
  if (failed) return options.file + ": " + failed.message();
  if (!std::filesystem::is_regular_file(options.file, failed)) {
    return options.file + ": not a file; a sender writes DATA/heartbeat";
  }
  const auto age = std::filesystem::file_time_type::clock::now() - written;
  if (age <= std::chrono::seconds(options.seconds)) return "";
  return options.file + " was last written " +
         std::to_string(std::chrono::duration_cast<std::chrono::seconds>(age).count()) + " s ago";
}

void Configure(Syntax word) {
  auto options = std::make_shared<HealthOptions>();
  word.AddOption("--url", options->url,
                 "URL that returns 200 if healthy; without a path: /readyz of it")
      .ShowDefault();
  word.AddOption("--file", options->file,
                 "File that was written recently if healthy; replaces --url");
  word.AddOption("--max-age", options->seconds, "Maximum age of --file, in seconds")
      .Between(std::int64_t{1}, std::int64_t{86'400})
      .ShowDefault();
  word.Footer(kFooter);
  word.OnRun([options] {
    options->url = WithPath(std::move(options->url));
    const std::string wrong = options->file.empty() ? AskUrl(*options) : AskFile(*options);
    if (!wrong.empty()) std::cerr << "weir: " << wrong << '\n';
    return wrong.empty() ? 0 : 1;
  });
}

const Command kHealthcheck("healthcheck", "Check whether a running service or sender is healthy.",
                           Configure);

}  // namespace
}  // namespace weir::app::healthcheck_command
