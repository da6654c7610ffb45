#include "notify/providers.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "notify/smtp_provider.h"
#include "notify/webhook_provider.h"

namespace weir::notify {
namespace {

/// Thread-safe.
class RoutedProvider final : public Provider {
 public:
  Status Deliver(const Event& event) override {
    auto found = providers_.find(event.channel);
    if (found == providers_.end()) found = providers_.find(std::string());
    if (found != providers_.end()) return found->second->Deliver(event);
    return Error{Code::kInvalidArgument, "channel " + event.channel + " has no provider"};
  }
  bool Add(std::string channel, std::shared_ptr<Provider> provider) {
    return providers_.emplace(std::move(channel), std::move(provider)).second;
  }

 private:
  std::map<std::string, std::shared_ptr<Provider>> providers_;  // "": all others
};

struct Route {
  std::string channel;  // empty: all others
  std::string url;
};

Route Split(const std::string& text) {
  const std::size_t equals = text.find('=');
  // The colon of a URL comes before any '='.
  if (equals == std::string::npos || text.find(':') < equals) return {{}, text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

constexpr std::string_view kConsole = "console:";

// Of providers other than the console.
Result<std::shared_ptr<Provider>> OpenOne(const std::string& url, const ProviderOptions& options) {
  if (url.starts_with("smtp://") || url.starts_with("smtps://")) {
    Result<SmtpOptions> smtp = ParseSmtpUrl(url);
    if (!smtp.ok()) return smtp.error();
    smtp->timeout = options.timeout;
    auto opened = SmtpProvider::Open(std::move(*smtp));
    if (!opened.ok()) return opened.error();
    return std::shared_ptr<Provider>(std::move(*opened));
  }
  if (url.starts_with("http://") || url.starts_with("https://")) {
    auto opened =
        WebhookProvider::Open({.url = url, .token = options.token, .timeout = options.timeout});
    if (!opened.ok()) return opened.error();
    return std::shared_ptr<Provider>(std::move(*opened));
  }
  return Error{Code::kInvalidArgument,
               "must be console:, http://…, https://…, smtp://… or smtps://…"};
}

}  // namespace

bool OnlyConsole(const ProviderOptions& options) {
  return std::all_of(options.routes.begin(), options.routes.end(),
                     [](const std::string& text) { return Split(text).url == kConsole; });
}

Result<std::unique_ptr<Provider>> OpenProviders(const ProviderOptions& options) {
  if (options.routes.size() > kMaxProviders) {
    return Error{Code::kInvalidArgument,
                 "there must not be more than " + std::to_string(kMaxProviders) + " providers"};
  }
  auto routed = std::make_unique<RoutedProvider>();
  // One for all channels: it keeps their lines apart.
  const std::shared_ptr<Provider> console =
      std::make_shared<ConsoleProvider>(STDOUT_FILENO, options.timeout);
  if (options.routes.empty()) routed->Add({}, console);
  for (const std::string& text : options.routes) {
    Route route = Split(text);
    if (!route.channel.empty()) {
      if (Status s = CheckChannel(route.channel); !s.ok()) {
        return Error{Code::kInvalidArgument, "provider: " + s.error().message};
      }
    }
    const std::string name = route.channel.empty() ? "all channels" : route.channel;
    auto opened = route.url == kConsole ? Result<std::shared_ptr<Provider>>(console)
                                        : OpenOne(route.url, options);
    if (!opened.ok()) {
      return Error{opened.error().code, "provider of " + name + ": " + opened.error().message};
    }
    if (!routed->Add(std::move(route.channel), std::move(*opened))) {
      return Error{Code::kInvalidArgument, "provider of " + name + ": given twice"};
    }
  }
  return std::unique_ptr<Provider>(std::move(routed));
}

}  // namespace weir::notify
