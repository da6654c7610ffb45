#pragma once

// What the users of libcurl have in common. For their .cc files only.

#include <curl/curl.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "weir/result.h"

namespace weir::curl {

struct DeleteHandle {
  void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, DeleteHandle>;

struct DeleteList {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, DeleteList>;

inline void Append(List& list, const std::string& line) {
  if (curl_slist* longer = curl_slist_append(list.get(), line.c_str()); longer != nullptr) {
    static_cast<void>(list.release());
    list.reset(longer);
  }
}

/// Initializes libcurl once for the process.
inline Status Start() {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready == CURLE_OK) return {};
  return Error{Code::kInternal, "cannot initialize libcurl"};
}

/// Idle connections, kept alive. Thread-safe.
class Connections {
 public:
  Handle Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return Handle(curl_easy_init());
    Handle handle = std::move(idle_.back());
    idle_.pop_back();
    return handle;
  }
  void GiveBack(Handle handle) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(handle));
  }

 private:
  std::mutex mutex_;
  std::vector<Handle> idle_;
};

}  // namespace weir::curl
