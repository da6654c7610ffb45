#include "support/http_client.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <stdexcept>

namespace weir::test {
namespace {

bool SameName(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

std::string_view Trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::size_t ParseNumber(std::string_view text, int base) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end == text.data()) {
    throw std::runtime_error("not a number: \"" + std::string(text) + "\"");
  }
  return number;
}

// `head` is a status line and headers, each ending in CRLF, and the empty line.
HttpResponse ParseHead(std::string_view head) {
  if (!head.starts_with("HTTP/1.") || head.size() < 12) {
    throw std::runtime_error("not an HTTP answer: \"" + std::string(head) + "\"");
  }
  HttpResponse response;
  response.status = static_cast<int>(ParseNumber(head.substr(9, 3), 10));
  head.remove_prefix(head.find("\r\n") + 2);
  while (!head.starts_with("\r\n")) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      throw std::runtime_error("not a header: \"" + std::string(line) + "\"");
    }
    response.headers.emplace_back(line.substr(0, colon), Trim(line.substr(colon + 1)));
    head.remove_prefix(line.size() + 2);
  }
  return response;
}

bool HasName(const HttpHeaders& headers, std::string_view name) noexcept {
  return std::any_of(headers.begin(), headers.end(),
                     [name](const auto& header) { return SameName(header.first, name); });
}

}  // namespace

std::string_view HttpResponse::Header(std::string_view name) const noexcept {
  for (const auto& [key, value] : headers) {
    if (SameName(key, name)) return value;
  }
  return {};
}

bool HttpResponse::HasHeader(std::string_view name) const noexcept {
  return HasName(headers, name);
}

HttpClient::HttpClient(std::uint16_t port, std::string host, std::chrono::milliseconds timeout)
    : port_(port), host_(std::move(host)), timeout_(timeout) {}

TcpConnection& HttpClient::connection() {
  if (!connection_) connection_.emplace(port_, host_, timeout_);
  return *connection_;
}

HttpResponse HttpClient::Get(std::string_view target, const HttpHeaders& headers) {
  return Send("GET", target, {}, headers);
}

HttpResponse HttpClient::Post(std::string_view target, std::string_view body,
                              const HttpHeaders& headers) {
  if (HasName(headers, "Content-Type")) return Send("POST", target, body, headers);
  HttpHeaders all = headers;
  all.emplace_back("Content-Type", "application/json");
  return Send("POST", target, body, all);
}

HttpResponse HttpClient::Send(std::string_view method, std::string_view target,
                              std::string_view body, const HttpHeaders& headers) {
  std::string request;
  request.append(method).append(" ").append(target).append(" HTTP/1.1\r\n");
  if (!HasName(headers, "Host")) {
    request.append("Host: ").append(host_).append(":").append(std::to_string(port_)).append("\r\n");
  }
  for (const auto& [name, value] : headers) {
    request.append(name).append(": ").append(value).append("\r\n");
  }
  const bool has_body = !body.empty() || method == "POST" || method == "PUT";
  if (has_body && !HasName(headers, "Content-Length")) {
    request.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
  }
  request.append("\r\n").append(body);
  SendRaw(request);
  return ReadResponse(method);
}

void HttpClient::SendRaw(std::string_view bytes) { connection().Send(bytes); }

HttpResponse HttpClient::ReadResponse(std::string_view method) {
  HttpResponse response = ParseHead(connection().ReadThrough("\r\n\r\n"));
  while (response.status / 100 == 1) {
    response = ParseHead(connection().ReadThrough("\r\n\r\n"));
  }
  response.body = ReadBody(response, method);
  if (SameName(response.Header("Connection"), "close")) Disconnect();
  return response;
}

std::string HttpClient::ReadBody(const HttpResponse& response, std::string_view method) {
  if (method == "HEAD" || response.status == 204 || response.status == 304) return {};
  if (SameName(response.Header("Transfer-Encoding"), "chunked")) return ReadChunks();
  if (response.HasHeader("Content-Length")) {
    return connection().Read(ParseNumber(response.Header("Content-Length"), 10));
  }
  std::string body = connection().ReadAll();
  Disconnect();
  return body;
}

std::string HttpClient::ReadChunks() {
  std::string body;
  while (true) {
    const std::size_t size = ParseNumber(connection().ReadThrough("\r\n"), 16);
    if (size == 0) break;
    body += connection().Read(size);
    connection().Read(2);
  }
  while (connection().ReadThrough("\r\n") != "\r\n") {
  }
  return body;
}

}  // namespace weir::test
