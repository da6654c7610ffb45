#pragma once

#include <cstdint>

namespace weir::test {

/// A TCP port of the loopback interface that nothing listens on. It is given to nobody else that
/// asks here, in any process, until this process ends: tests that run side by side never collide.
/// Servers that print the port they got should rather be told port 0. Thread-safe.
std::uint16_t FreePort();

}  // namespace weir::test
