#pragma once

namespace weir::test {

// Exit codes as documented in docs/reference/cli.md.
inline constexpr int kOk = 0;
inline constexpr int kNo = 1;
inline constexpr int kUsage = 2;
inline constexpr int kUnreachable = 3;
inline constexpr int kRefused = 4;

}  // namespace weir::test
