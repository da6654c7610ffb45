#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "access/tokens.h"
#include "weir/result.h"

namespace weir::access {

/// Reads an issuer's public keys from a file or an https:// URL into Tokens, at startup, every 5
/// minutes, and soon after a token names an unknown key, on its own thread: keys are rotated, and
/// reactors must not wait for it. If the keys cannot be read, that is logged and nothing changes.
///
/// Thread safety: for use by the thread that created it.
class JwksSource {
 public:
  /// Reads once before it returns. An unusable file is an error; if a URL does not
  /// answer, it is tried again in the background, and until then no token is valid.
  /// `ca`: PEM file of the CAs to trust for the URL's server; empty: the system's.
  static Result<std::unique_ptr<JwksSource>> Open(std::string where, std::string ca,
                                                  Tokens& tokens);
  ~JwksSource();
  JwksSource(const JwksSource&) = delete;
  JwksSource& operator=(const JwksSource&) = delete;

 private:
  JwksSource(std::string where, std::string ca, Tokens& tokens)
      : where_(std::move(where)), ca_(std::move(ca)), tokens_(tokens) {}
  void Hurry();
  Status Read();
  void Loop(bool good);

  const std::string where_;
  const std::string ca_;
  Tokens& tokens_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  std::atomic<bool> stopping_{false};
  bool wanted_ = false;  // a token named an unknown key
  std::thread thread_;   // last, since it uses all of the above
};

}  // namespace weir::access
