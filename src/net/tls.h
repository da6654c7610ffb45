#pragma once

// TLS for every door, without sockets: a connection feeds a TlsSession what it received and sends
// what the session returns, however it does its I/O. OpenSSL stays out of this header.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weir/result.h"

namespace weir::net {

/// PEM files. If `client_ca` is not empty (mutual TLS), clients must present a certificate signed
/// by it.
struct TlsFiles {
  std::string certificate;  ///< the server's, followed by its chain
  std::string key;
  std::string client_ca;
};

/// One TLS connection's state. Not thread-safe: lives on its connection's reactor.
class TlsSession {
 public:
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Takes bytes from the peer and continues the handshake. An error is final: send what Drain
  /// still returns (an alert that tells the peer why), then close.
  Status Feed(std::string_view received);
  /// Decrypts what was received, as far as it is complete; 0: nothing (more) yet. Errors are final.
  Result<std::size_t> Read(std::span<char> plain);
  /// Encrypts; Drain returns the result. Requires established().
  Status Write(std::string_view plain);
  /// Bytes to send to the peer; 0: none.
  std::size_t Drain(std::span<char> cipher);

  /// This side began the connection.
  bool client() const noexcept;
  /// The handshake is done.
  bool established() const noexcept { return established_; }
  /// The peer has announced that it sends no more.
  bool peer_closed() const noexcept { return peer_closed_; }
  /// Announces to the peer that no more is sent; Drain returns the bytes.
  void Close();

  /// The protocol chosen by ALPN; empty if the client did not ask.
  std::string_view protocol() const noexcept;
  /// The subject's common name in the client's certificate; empty without one.
  std::string peer_name() const;

 private:
  friend class TlsContext;
  friend class TlsClientContext;
  struct State;
  explicit TlsSession(std::unique_ptr<State> state);
  bool Begins() const noexcept;
  Status Handshake();

  std::unique_ptr<State> state_;
  bool established_ = false;
  bool peer_closed_ = false;
};

/// The certificates of a listener, reloaded when their files change: new connections
/// get the new ones, open connections keep theirs. Files that cannot be used change
/// nothing. A separate thread checks the files every second and reads them when they have
/// stopped changing: no reactor waits for a disk, and no half-written pair is read.
///
/// Thread-safe.
class TlsContext {
 public:
  /// Called after every attempt to read changed files, on the thread that made it.
  using OnReload = std::function<void(const Status&)>;

  /// `protocols`: what ALPN may choose, best first ("h2", "http/1.1"); empty: no ALPN.
  static Result<std::shared_ptr<TlsContext>> Load(TlsFiles files,
                                                  std::vector<std::string> protocols,
                                                  OnReload on_reload = {});
  ~TlsContext();

  /// Creates the state of a new connection.
  Result<std::unique_ptr<TlsSession>> NewSession();

  /// Reads the files now (on SIGHUP). On an error the certificates stay as they are.
  Status Reload();

 private:
  struct Loaded;
  TlsContext(TlsFiles files, std::vector<std::string> protocols, OnReload on_reload);
  Result<std::shared_ptr<const Loaded>> Read() const;
  std::string Fingerprint() const;
  void Watch();

  const TlsFiles files_;
  const std::vector<std::string> protocols_;
  const OnReload on_reload_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::string fingerprint_;
  std::shared_ptr<const Loaded> loaded_;
  std::thread watcher_;  // last: it uses all of the above
};

/// What we require of servers that we connect to. Their certificates are always verified, by name,
/// unless that is turned off.
struct TlsClientOptions {
  std::string ca;           ///< PEM file of the CAs that are trusted; empty: the system's
  std::string certificate;  ///< shown to servers that ask for one, with `key`; empty: none
  std::string key;
  bool verify = true;
};

/// TLS for outgoing connections. The files are read once, by Load.
///
/// Thread-safe.
class TlsClientContext {
 public:
  static Result<std::shared_ptr<TlsClientContext>> Load(const TlsClientOptions& options);
  ~TlsClientContext();

  /// Creates the state of a new connection to a server that must have a certificate for `host`, a
  /// name or an address.
  Result<std::unique_ptr<TlsSession>> NewSession(const std::string& host) const;

 private:
  struct Loaded;
  explicit TlsClientContext(std::unique_ptr<Loaded> loaded);

  const std::unique_ptr<Loaded> loaded_;
};

}  // namespace weir::net
