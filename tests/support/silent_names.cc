#include "support/silent_names.h"

#include <dlfcn.h>
#include <netdb.h>

#include <condition_variable>
#include <mutex>
#include <string_view>

namespace weir::test {
namespace {

struct Lookups {
  std::mutex mutex;
  std::condition_variable changed;
  bool silent = false;
  int waiting = 0;
};

// Threads that libcurl no longer waits for may still be here when the program ends.
Lookups& All() {
  static auto* const lookups = new Lookups;
  return *lookups;
}

void WaitForNothing() {
  Lookups& all = All();
  std::unique_lock lock(all.mutex);
  ++all.waiting;
  all.changed.notify_all();
  all.changed.wait_for(lock, SilentNames::kSilence, [&] { return !all.silent; });
  --all.waiting;
  all.changed.notify_all();
}

}  // namespace

SilentNames::SilentNames() {
  const std::lock_guard lock(All().mutex);
  All().silent = true;
}

SilentNames::~SilentNames() {
  std::unique_lock lock(All().mutex);
  All().silent = false;
  All().changed.notify_all();
  All().changed.wait(lock, [] { return All().waiting == 0; });
}

void SilentNames::WaitUntilAsked() {
  std::unique_lock lock(All().mutex);
  All().changed.wait(lock, [] { return All().waiting > 0; });
}

}  // namespace weir::test

// Takes the place of the C library's, also for libcurl.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  using Lookup = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Lookup>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (host == nullptr || host != std::string_view(weir::test::SilentNames::kHost)) {
    return real(host, service, hints, found);
  }
  weir::test::WaitForNothing();
  return EAI_AGAIN;
}
