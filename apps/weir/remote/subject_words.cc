#include "remote/subject_words.h"

#include <iostream>

#include "base/json_writer.h"
#include "console.h"
#include "remote/service_client.h"

namespace weir::app {

void SubjectWords::AddTo(Syntax word, const std::string& about_key) {
  word.AddOption("KEY", key, about_key);
  word.AddOption("-e,--entry", entries,
                 "An entry of a descriptor, such as user=42; replaces the key");
  word.AddOption("--domain", domain, "The domain of the descriptor");
}

bool SubjectWords::Valid() const {
  if (key.empty() == entries.empty()) {
    std::cerr << "weir: give either a key or entries such as -e user=42\n";
    return false;
  }
  if (!domain.empty() && entries.empty()) {
    // A key with this text would be another one than the caller means.
    const std::string entry = key.find('=') == std::string::npos ? "user=42" : key;
    std::cerr << "weir: --domain requires entries, as in --domain " << Shown(domain) << " -e "
              << Shown(entry) << "; a bare key has no domain\n";
    return false;
  }
  for (const std::string& entry : entries) {
    if (entry.find('=') != std::string::npos && entry.front() != '=') continue;
    std::cerr << "weir: --entry must be like user=42, not " << Shown(entry) << '\n';
    return false;
  }
  if (key.find('=') != std::string::npos && key.find('|') == std::string::npos) {
    std::cerr << "weir: note: " << Shown(key)
              << " is taken as a bare key; for an entry of a request, "
              << "write -e " << Shown(key) << '\n';
  }
  return true;
}

std::string SubjectWords::CheckBody(std::int64_t cost, const More& more) const {
  return JsonObject([&](JsonWriter& json) {
    if (entries.empty()) {
      json.Field("key", key);
    } else {
      if (!domain.empty()) json.Field("domain", domain);
      json.Key("descriptors").BeginArray().BeginArray();
      for (const std::string& entry : entries) {
        const std::size_t equals = entry.find('=');
        json.BeginObject()
            .Field("key", entry.substr(0, equals))
            .Field("value", entry.substr(equals + 1))
            .EndObject();
      }
      json.EndArray().EndArray();
    }
    json.Field("cost", cost);
    if (more.expires_after_ms) json.Field("expiresAfterMs", *more.expires_after_ms);
    if (more.overdraw) json.Field("overdraw", true);
  });
}

std::string SubjectWords::EntryQuery() const {
  std::string query;
  if (!domain.empty()) query += "&domain=" + UrlEscaped(domain);
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    query += "&" + UrlEscaped(entry.substr(0, equals)) + "=" + UrlEscaped(entry.substr(equals + 1));
  }
  return query;
}

}  // namespace weir::app
