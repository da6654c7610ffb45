#include "store/redis/key_list.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/number.h"
#include "drivers/redis/connection.h"
#include "drivers/redis/url.h"
#include "store/redis/names.h"

namespace weir::store::redis {
namespace {

using weir::redis::Address;
using weir::redis::Answer;
using weir::redis::Command;
using weir::redis::Connection;
using weir::redis::ConnectionOptions;
using weir::redis::Endpoint;
using weir::redis::Reply;

/// SCAN examines about COUNT keys of the whole server, ours or not; this many calls per page.
constexpr int kMaxScans = 50;
constexpr std::size_t kLeastCount = 10;
constexpr std::chrono::milliseconds kLongest{500};
/// How many nodes of a cluster to ask for the list of masters.
constexpr std::size_t kMaxAsked = 3;

/// Where a list continues: a server, and its own cursor. "2.174063616".
struct Cursor {
  std::size_t server = 0;
  std::uint64_t scan = 0;
};

std::optional<Cursor> ParseCursor(std::string_view text) {
  Cursor cursor;
  if (text.empty()) return cursor;
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) return std::nullopt;
  const auto server = ParseNumber<std::size_t>(text.substr(0, point));
  const auto scan = ParseNumber<std::uint64_t>(text.substr(point + 1));
  if (!server || !scan) return std::nullopt;
  return Cursor{*server, *scan};
}

/// The text as a SCAN pattern that matches only itself.
std::string Quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("*?[]^\\").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// Sends one command after another, waiting for each answer.
class Asker {
 public:
  Asker(const Address& address, const Options& options) : options_(ConnectionOptions::Of(address)) {
    options_.connect_timeout = options.connect_timeout;
    options_.command_timeout = options.command_timeout;
  }

  void Connect(const Endpoint& endpoint) {
    options_.endpoint = endpoint;
    connection_ = std::make_unique<Connection>(io_, options_);
  }
  Result<Reply> Ask(Command command) {
    std::optional<Answer> answer;
    connection_->Send(std::move(command), [&answer](Answer given) { answer = std::move(given); });
    while (!answer) {
      io_.restart();
      io_.run_one();
    }
    if (!answer->status.ok()) return answer->status.error();
    return std::move(answer->reply);
  }

 private:
  boost::asio::io_context io_{1};
  ConnectionOptions options_;
  std::unique_ptr<Connection> connection_;
};

/// The masters listed in a reply to CLUSTER SLOTS, in order.
std::vector<Endpoint> MastersOf(const Reply& slots, const Endpoint& from) {
  std::set<Endpoint> masters;
  for (const Reply& range : slots.elements) {
    if (!range.is_array(3) || !range.elements[2].is_array(2)) continue;
    const std::vector<Reply>& master = range.elements[2].elements;
    if (master[1].integer < 1 || master[1].integer > 65535) continue;
    masters.insert({master[0].text.empty() ? from.host : master[0].text,
                    static_cast<std::uint16_t>(master[1].integer)});
  }
  return {masters.begin(), masters.end()};
}

Result<std::vector<Endpoint>> ServersOf(const Address& address, Asker& asker) {
  if (!address.cluster) return address.endpoints;
  Error last;
  const std::size_t count = std::min(address.endpoints.size(), kMaxAsked);
  for (const Endpoint& endpoint : std::span(address.endpoints).first(count)) {
    asker.Connect(endpoint);
    const Result<Reply> slots = asker.Ask({"CLUSTER", "SLOTS"});
    if (slots.ok()) return MastersOf(*slots, endpoint);
    last = slots.error();
  }
  return last;
}

}  // namespace

Result<KeyPage> ReadKeys(const Options& options, const KeyQuery& query) {
  const Result<Address> address = weir::redis::ParseUrl(options.url);
  if (!address.ok()) return address.error();
  std::optional<Cursor> cursor = ParseCursor(query.cursor);
  if (!cursor)
    return Error{Code::kInvalidArgument, "cursor: must be one that a page of keys returned"};
  Asker asker(*address, options);
  const Result<std::vector<Endpoint>> servers = ServersOf(*address, asker);
  if (!servers.ok()) return servers.error();
  const Names names(options.prefix, address->cluster, {});
  const std::string pattern =
      Quoted(options.prefix) + (address->cluster ? "{*}" : "") + Quoted(query.prefix) + "*";
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  KeyPage page;
  std::optional<std::size_t> connected;
  for (int scans = 0; scans < kMaxScans && page.keys.size() < query.limit; ++scans) {
    if (scans > 0 && std::chrono::steady_clock::now() >= deadline) break;
    if (cursor->server >= servers->size()) break;
    if (connected != cursor->server) asker.Connect((*servers)[cursor->server]);
    connected = cursor->server;
    const auto count =
        static_cast<std::int64_t>(std::max(query.limit - page.keys.size(), kLeastCount));
    const Result<Reply> reply = asker.Ask(
        Command{"SCAN", std::to_string(cursor->scan)}.Add("MATCH").Add(pattern).Add("COUNT").Add(
            count));
    if (!reply.ok()) return reply.error();
    if (!reply->is_array(2)) return Error{Code::kInternal, "redis: unexpected reply to SCAN"};
    for (const Reply& name : reply->elements[1].elements) {
      std::optional<HeldKey> held = names.Parse(name.text);
      if (held && held->key.starts_with(query.prefix)) page.keys.push_back(std::move(*held));
    }
    const std::string& next = reply->elements[0].text;
    cursor->scan = ParseNumber<std::uint64_t>(next).value_or(0);
    if (cursor->scan == 0) ++cursor->server;
  }
  std::sort(page.keys.begin(), page.keys.end());
  page.keys.erase(std::unique(page.keys.begin(), page.keys.end()), page.keys.end());
  if (cursor->server < servers->size()) {
    page.next = std::to_string(cursor->server) + "." + std::to_string(cursor->scan);
  }
  return page;
}

}  // namespace weir::store::redis
