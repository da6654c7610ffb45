#include "remote/subject_words.h"

#include <iostream>

#include "base/json_text.h"
#include "console.h"
#include "remote/service_client.h"

namespace weir::app {

void SubjectWords::AddTo(CLI::App& word, const std::string& about_key) {
  word.add_option("bucket", key, about_key);
  word.add_option("-e,--entry", entries, "Instead: an entry of a descriptor, such as user=42");
  word.add_option("--domain", domain, "The domain of the descriptor");
}

bool SubjectWords::Valid() const {
  if (key.empty() == entries.empty()) {
    std::cerr << "weir: give either a key or entries such as -e user=42\n";
    return false;
  }
  for (const std::string& entry : entries) {
    if (entry.find('=') != std::string::npos && entry.front() != '=') continue;
    std::cerr << "weir: --entry must be like user=42, not " << Shown(entry) << '\n';
    return false;
  }
  return true;
}

std::string SubjectWords::CheckBody(std::int64_t cost, const std::string& more) const {
  std::string body = "{";
  if (entries.empty()) {
    body += "\"key\":";
    AppendJsonString(body, key);
  } else {
    if (!domain.empty()) {
      body += "\"domain\":";
      AppendJsonString(body, domain);
      body += ',';
    }
    body += "\"descriptors\":[[";
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::size_t equals = entries[i].find('=');
      body += i == 0 ? "{\"key\":" : ",{\"key\":";
      AppendJsonString(body, entries[i].substr(0, equals));
      body += ",\"value\":";
      AppendJsonString(body, entries[i].substr(equals + 1));
      body += '}';
    }
    body += "]]";
  }
  return body + ",\"cost\":" + std::to_string(cost) + more + "}";
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
