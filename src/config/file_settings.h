#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "weir/result.h"

namespace weir::config {

/// What a configuration file says, setting by setting and as digests, to find out later what has
/// changed in it. Keys in files that it names count as their contents.
///
/// Not thread-safe, like any value.
class FileSettings {
 public:
  /// An error if the file cannot be read or is not YAML. An empty path is a file without settings.
  static Result<FileSettings> Read(const std::string& path);

  /// The names of the settings that differ, as "access.keys".
  std::vector<std::string> ChangedIn(const FileSettings& later) const;

 private:
  std::map<std::string, Digest> settings_;
};

}  // namespace weir::config
