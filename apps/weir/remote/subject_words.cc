#include "remote/subject_words.h"

#include <iostream>

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
