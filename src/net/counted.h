#pragma once

#include <cstddef>

namespace weir::net {

/// Lives as long as a boost::intrusive_ptr to it exists: its owner holds one, and so does every
/// pending operation.
///
/// Not thread-safe: the counting, too, happens on one reactor's thread.
class Counted {
 public:
  Counted() = default;
  virtual ~Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  friend void intrusive_ptr_add_ref(Counted* counted) noexcept { ++counted->references_; }
  friend void intrusive_ptr_release(Counted* counted) noexcept {
    if (--counted->references_ == 0) delete counted;
  }

 private:
  std::size_t references_ = 0;
};

}  // namespace weir::net
