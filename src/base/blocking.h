#pragma once

// A reactor's thread serves thousands of connections; one call on it that waits for a disk, a lock
// held over I/O or another machine stalls them all. To catch such calls, reactors mark their
// threads, and every function that may block calls MayBlock first, which aborts a development
// build when it runs on a marked thread.

namespace weir {

/// Marks the calling thread as one that must never block, as long as this object lives.
///
/// Use it only on the thread that created it.
class NeverBlocks {
 public:
  NeverBlocks() noexcept;
  ~NeverBlocks();
  NeverBlocks(const NeverBlocks&) = delete;
  NeverBlocks& operator=(const NeverBlocks&) = delete;

 private:
  const bool before_;
};

/// Call this before anything that may block. On a marked thread, a build without NDEBUG prints
/// `what` and aborts; a release build continues. Any thread.
#ifdef NDEBUG
inline void MayBlock(const char* /*what*/) noexcept {}
#else
void MayBlock(const char* what) noexcept;
#endif

}  // namespace weir
