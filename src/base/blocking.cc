#include "base/blocking.h"

#include <cstdio>
#include <cstdlib>

namespace weir {
namespace {

thread_local bool never_blocks = false;

}  // namespace

NeverBlocks::NeverBlocks() noexcept : before_(never_blocks) { never_blocks = true; }
NeverBlocks::~NeverBlocks() { never_blocks = before_; }

#ifndef NDEBUG
void MayBlock(const char* what) noexcept {
  if (!never_blocks) return;
  std::fprintf(stderr, "blocking call on a reactor's thread: %s\n", what);
  std::abort();
}
#endif

}  // namespace weir
