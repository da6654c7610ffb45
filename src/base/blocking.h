#pragma once

// A reactor's thread serves thousands of connections; one call on it that waits for a disk, a lock
// held over I/O or another machine stops them all. So that none is made by mistake, reactors mark
// their threads, and whatever may wait says so first: MayBlock ends a development build at once
// when it is called on a marked thread.

namespace weir {

/// Marks the calling thread as one that must never wait, as long as this object lives.
///
/// For the thread that made it.
class NeverBlocks {
 public:
  NeverBlocks() noexcept;
  ~NeverBlocks();
  NeverBlocks(const NeverBlocks&) = delete;
  NeverBlocks& operator=(const NeverBlocks&) = delete;

 private:
  const bool before_;
};

/// Called first by everything that may wait. On a marked thread a build without NDEBUG prints
/// `what` and aborts; a release build goes on. Any thread.
#ifdef NDEBUG
inline void MayBlock(const char* /*what*/) noexcept {}
#else
void MayBlock(const char* what) noexcept;
#endif

}  // namespace weir
