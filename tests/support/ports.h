#pragma once

#include <cstdint>

namespace weir::test {

/// A TCP port of the loopback interface that nothing listens on. No other caller of this function,
/// in any process, gets it until this process ends: tests that run side by side never collide.
/// For servers that print the port they got, use port 0 instead. Thread-safe.
std::uint16_t FreePort();

}  // namespace weir::test
