// A plain Boost.Beast server with a weir::Filter in front of its handler.
//
//   filter_beast_server 8080     listens on that port until it is stopped
//   filter_beast_server          sends itself a few requests and prints the responses

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "weir/filter.h"

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

/// Adapts a Beast request to the filter. The request must outlive the view.
weir::FilterRequest View(const Request& request, const std::string& peer) {
  const auto header = [&request](std::string_view name,
                                 std::size_t nth) -> std::optional<std::string_view> {
    auto [field, end] = request.equal_range({name.data(), name.size()});
    while (field != end && nth > 0) {
      ++field;
      --nth;
    }
    if (field == end) return std::nullopt;
    return std::string_view(field->value().data(), field->value().size());
  };
  return {.method = {request.method_string().data(), request.method_string().size()},
          .target = {request.target().data(), request.target().size()},
          .peer = peer,
          .header = header};
}

/// The application itself, which is unaware of limits.
Response Handle(const Request& request) {
  Response response(http::status::ok, request.version());
  response.body() = "Hello, Successfully retrieved request";
  return response;
}

Response HandleLimited(weir::Filter& filter, const Request& request, const std::string& peer) {
  const weir::FilterVerdict verdict = filter.Check(View(request, peer));
  Response response = verdict.allowed ? Handle(request) : Response();
  if (!verdict.allowed) {
    response.result(static_cast<unsigned>(verdict.status));
    response.set(http::field::content_type,
                 beast::string_view(verdict.content_type.data(), verdict.content_type.size()));
    response.body() = verdict.body;
  }
  for (const auto& [name, value] : verdict.headers) {
    response.set(beast::string_view(name.data(), name.size()), value);
  }
  return response;
}

void Serve(weir::Filter& filter, tcp::socket socket) {
  const std::string peer = socket.remote_endpoint().address().to_string();
  beast::flat_buffer buffer;
  beast::error_code error;
  while (true) {
    Request request;
    http::read(socket, buffer, request, error);
    if (error) return;
    Response response = HandleLimited(filter, request, peer);
    response.keep_alive(request.keep_alive());
    response.prepare_payload();
    http::write(socket, response, error);
    if (error || !response.keep_alive()) return;
  }
}

/// Three requests where two are allowed.
void Demonstrate(asio::io_context& context, const tcp::endpoint& server) {
  tcp::socket socket(context);
  socket.connect(server);
  beast::flat_buffer buffer;
  for (int i = 0; i < 3; ++i) {
    Request request(http::verb::get, "/", 11);
    request.set(http::field::host, "localhost");
    http::write(socket, request);
    Response response;
    http::read(socket, buffer, response);
    std::cout << response.result_int() << " remaining " << response["X-RateLimit-Remaining"] << ": "
              << response.body() << '\n';
  }
}

int main(int argc, char** argv) {
  const auto quota = weir::Quota::SlidingLog(argc > 1 ? 100 : 2, std::chrono::minutes(60));
  auto filter = weir::Filter::Create(
      {.rules = {{.name = "per-ip", .by = {weir::LimitBy::kIp}, .quota = *quota}}});
  if (!filter) {
    std::cerr << filter.error().message << '\n';
    return 1;
  }
  asio::io_context context;
  const auto port = static_cast<unsigned short>(argc > 1 ? std::atoi(argv[1]) : 0);
  tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), port});
  while (argc > 1) std::thread(Serve, std::ref(*filter), acceptor.accept()).detach();
  std::thread server([&] { Serve(*filter, acceptor.accept()); });
  Demonstrate(context, acceptor.local_endpoint());
  server.join();
  return 0;
}
