#pragma once

namespace weir {

// 128-bit integers are a GCC and clang extension, spelled so that -Wpedantic accepts it.
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

}  // namespace weir
