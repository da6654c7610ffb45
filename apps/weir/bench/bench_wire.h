#pragma once

// What a load generator sends and receives on one connection, for each protocol. No sockets.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

enum class Heard : std::uint8_t { kAllowed, kLimited, kError };

struct HeardReply {
  std::uint64_t number = 0;  ///< which question it answers, from 0
  Heard what = Heard::kError;
};

/// One connection's side of a protocol.
///
/// Not thread-safe.
class BenchWire {
 public:
  virtual ~BenchWire() = default;

  /// Appends what opens the connection.
  virtual void Begin(std::string& /*out*/) {}
  /// Appends the next question, about this key.
  virtual void Ask(std::string_view key, std::string& out) = 0;
  /// Takes received bytes, appends complete replies, and to `out` what must be sent immediately.
  /// False if the bytes violate the protocol.
  virtual bool Take(std::string_view bytes, std::vector<HeardReply>& replies, std::string& out) = 0;

  /// Whether questions may be sent: not before a handshake is over.
  virtual bool open() const { return true; }
  /// Why Take returned false.
  virtual std::string why() const { return "unexpected response; is this the right port?"; }
};

/// `host` goes into the Host header and :authority, `scheme` into :scheme.
std::unique_ptr<BenchWire> MakeHttpWire(std::string host);
std::unique_ptr<BenchWire> MakeRespWire();
std::unique_ptr<BenchWire> MakeGrpcWire(std::string host, std::string scheme);

}  // namespace weir::app
