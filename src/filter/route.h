#pragma once

// The names of the path that a request is for. Servers disagree on what a path is: nginx decodes
// %2F, others do not; Tomcat drops `;x`; Express ignores case. A limit that followed one of them
// could be evaded with a spelling that another one understands. So a path that servers read
// differently has several names, a limit on any of them counts, and a path with more readings than
// can be listed is refused. docs/guide/proxy.md has the table.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace weir::filter {

/// The names of one target at a time. Reused from target to target, so that a plain path costs one
/// pass over its bytes and no allocation.
///
/// Not thread-safe: one per connection or thread.
class Routes {
 public:
  Routes() = default;
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  /// The most names that a target can have.
  static constexpr std::size_t kMax = 12;

  /// Reads a target in origin form, absolute form or `*`; an empty one has no name. Returns null,
  /// or a message why the target is refused. The names may be views of `target`.
  const char* Read(std::string_view target);

  /// The first is the path as it was sent, in the normalized spelling of RFC 3986.
  std::span<const std::string_view> names() const noexcept { return {names_.data(), count_}; }

 private:
  const char* ReadPath(std::string_view path);
  void Add(std::string_view name);
  void AddName(std::string_view name);

  std::array<std::string, kMax> texts_;
  std::array<std::string_view, kMax> names_;
  std::size_t count_ = 0;
};

}  // namespace weir::filter
