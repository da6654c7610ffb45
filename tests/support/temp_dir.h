#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace weir::test {

/// A private directory for a test, removed with all its contents by the destructor.
///
/// Not thread-safe. Constructor and Write throw std::runtime_error on I/O errors.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  /// Creates or replaces the file `name` in the directory and returns its path.
  std::filesystem::path Write(std::string_view name, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

/// The contents of a file. Throws std::runtime_error if it cannot be read.
std::string ReadFile(const std::filesystem::path& path);

}  // namespace weir::test
