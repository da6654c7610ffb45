#pragma once

#include <span>
#include <string_view>

namespace weir::admin {

/// One file of web/, built into the program. All of it lives as long as the program.
struct Asset {
  std::string_view path;  ///< as requested: "/", "/assets/app.js"
  std::string_view content_type;
  std::string_view etag;  ///< quoted, a digest of the body
  std::string_view body;
};

/// Every file of web/; cmake/embed.cmake writes the definition.
std::span<const Asset> DashboardAssets();

}  // namespace weir::admin
