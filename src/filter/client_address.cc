#include "filter/client_address.h"

#include <algorithm>
#include <array>

namespace weir::filter {

namespace {

// Longer than any real chain of proxies; a request beyond it only tries to cost us time.
constexpr std::size_t kMaxHops = 64;

/// Walks one line from the right. Moves `client` along the trusted hops; true when the walk is
/// over.
bool WalkLine(std::string_view line, std::span<const IpNetwork> trusted, std::size_t& hops,
              IpAddress& client) {
  while (true) {
    if (++hops > kMaxHops) return true;
    const auto comma = line.rfind(',');
    const auto hop = IpAddress::ParseHop(comma == line.npos ? line : line.substr(comma + 1));
    if (!hop) return true;
    client = *hop;
    if (!ContainsAddress(trusted, client)) return true;
    if (comma == line.npos) return false;
    line = line.substr(0, comma);
  }
}

}  // namespace

IpAddress ResolveClient(const IpAddress& peer, const NthValue& forwarded_for,
                        std::span<const IpNetwork> trusted) {
  if (!ContainsAddress(trusted, peer)) return peer;
  // The last lines are those that proxies added; a client's own lines come before them and cannot
  // push them out, however many it sends. A line is at least one hop, so no more are read.
  std::array<std::string_view, kMaxHops> last;
  std::size_t lines = 0;
  while (const auto line = forwarded_for(lines)) last[lines++ % kMaxHops] = *line;

  IpAddress client = peer;
  std::size_t hops = 0;
  for (std::size_t walked = 0; walked < std::min(lines, kMaxHops); ++walked) {
    if (WalkLine(last[(lines - 1 - walked) % kMaxHops], trusted, hops, client)) break;
  }
  return client;
}

}  // namespace weir::filter
