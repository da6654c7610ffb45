#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weir/result.h"

namespace weir::postgres {

/// Brings a component's tables up to date: runs the steps that this database has not seen, each in
/// a transaction of its own and in order, and records them in the table weir_migrations. Several
/// processes may do so at once; one works, the others wait. Released steps never change, except
/// for functions that a later step replaces: those may be removed, since it drops them if they
/// exist. If all have run, nothing but the right to read weir_migrations is needed.
///
/// Blocks, on a connection of its own. Thread-safe.
Status Migrate(const std::string& url, std::string_view component,
               std::span<const char* const> steps,
               std::chrono::seconds timeout = std::chrono::seconds(10));

/// Creates a component's tables before its first statement. After a failure it tries again once a
/// second has passed; until then calls fail with the reason.
///
/// Not thread-safe: belongs to the thread that it may block.
class TablesOnFirstUse {
 public:
  /// `steps` must live as long as this.
  TablesOnFirstUse(std::string url, std::string component, std::span<const char* const> steps,
                   std::chrono::seconds timeout)
      : url_(std::move(url)), component_(std::move(component)), steps_(steps), timeout_(timeout) {}

  /// Blocks for as long as Migrate does, until it has succeeded once.
  Status Ensure();
  bool made() const noexcept { return made_; }

 private:
  const std::string url_;
  const std::string component_;
  const std::span<const char* const> steps_;
  const std::chrono::seconds timeout_;
  bool made_ = false;
  std::chrono::steady_clock::time_point again_{};
  Status last_;
};

}  // namespace weir::postgres
