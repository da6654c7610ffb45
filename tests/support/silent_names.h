#pragma once

#include <chrono>

namespace weir::test {

/// While one exists, a lookup of kHost in this program gets no answer, as from a name server that
/// is down: getaddrinfo returns after kSilence, or when this is destroyed.
class SilentNames {
 public:
  static constexpr const char* kHost = "silent.test";
  static constexpr std::chrono::seconds kSilence{20};

  SilentNames();
  ~SilentNames();
  SilentNames(const SilentNames&) = delete;
  SilentNames& operator=(const SilentNames&) = delete;

  /// Until a thread waits for the host's address.
  static void WaitUntilAsked();
};

}  // namespace weir::test
