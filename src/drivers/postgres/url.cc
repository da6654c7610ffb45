#include "drivers/postgres/url.h"

#include <libpq-fe.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/percent.h"
#include "base/query.h"

namespace weir::postgres {
namespace {

Error Wrong(const std::string& what) {
  return {Code::kInvalidArgument, "postgres:// URL: " + what};
}

/// Options of our own; libpq does not know them.
struct TlsWords {
  std::string mode, ca, cert, key;
  bool empty() const { return mode.empty() && ca.empty() && cert.empty() && key.empty(); }
  std::string* Of(std::string_view name) {
    if (name == "tls") return &mode;
    if (name == "tls_ca") return &ca;
    if (name == "tls_cert") return &cert;
    return name == "tls_key" ? &key : nullptr;
  }
};

/// Takes our options out of the url. The rest is for libpq to parse: it accepts forms that are
/// not URLs ("host=db dbname=weir") and sockets in place of hosts.
Result<std::string> TakeTlsWords(const std::string& url, TlsWords& words) {
  const std::size_t begin = url.find('?');
  if (url.find("://") == std::string::npos || begin == std::string::npos) return url;
  std::string kept = url.substr(0, begin);
  char separator = '?';
  QueryReader options(std::string_view(url).substr(begin + 1));
  while (const auto option = options.Next()) {
    std::string* word = words.Of(option->key);
    if (word == nullptr) {
      kept += separator;
      kept += option->text;
      separator = '&';
      continue;
    }
    const auto value = PercentDecoded(option->value);
    if (!value || value->empty())
      return Wrong("option '" + std::string(option->key) + "' has no value");
    *word = *value;
  }
  return kept;
}

/// This version of libpq has no name for them.
std::string SystemAuthorities() {
  if (const char* given = std::getenv("SSL_CERT_FILE"); given != nullptr) return given;
  for (const char* file : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/cert.pem"}) {
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) return file;
  }
  return "";
}

Status ApplyTls(Target& target, const TlsWords& words) {
  if (words.empty()) return {};
  if (words.cert.empty() != words.key.empty())
    return Wrong("tls_cert and tls_key must be given together");
  if (!words.cert.empty()) {
    target.Set("sslcert", words.cert);
    target.Set("sslkey", words.key);
  }
  if (words.mode == "off") {
    target.Set("sslmode", "disable");
  } else if (words.mode == "insecure-no-verify") {
    target.Set("sslmode", "require");
  } else if (words.mode == "required" || words.mode.empty()) {
    const std::string ca = words.ca.empty() ? SystemAuthorities() : words.ca;
    if (ca.empty()) return Wrong("this system has no CA file; give tls_ca=FILE");
    target.Set("sslmode", "verify-full");
    target.Set("sslrootcert", ca);
  } else {
    return Wrong("invalid value of option 'tls' (off, required, insecure-no-verify)");
  }
  return {};
}

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream text(list);
  for (std::string part; std::getline(text, part, ',');) parts.push_back(part);
  if (list.ends_with(',')) parts.emplace_back();
  return parts;
}

/// "a,b,c" becomes "b,c,a".
void RotateList(std::string& list) {
  const std::size_t comma = list.find(',');
  if (comma != std::string::npos) list = list.substr(comma + 1) + "," + list.substr(0, comma);
}

}  // namespace

Result<Target> Target::Parse(const std::string& url) {
  TlsWords words;
  const Result<std::string> plain = TakeTlsWords(url, words);
  if (!plain.ok()) return plain.error();
  char* problem = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(plain->c_str(), &problem), &PQconninfoFree);
  // libpq's own message may repeat what is in the place of the password.
  PQfreemem(problem);
  if (options == nullptr) {
    return Wrong("invalid; expected postgres://user:password@host:port/database");
  }
  Target target;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr) target.values_.emplace_back(option->keyword, option->val);
  }
  const std::string* mode = target.Find("sslmode");
  if (mode != nullptr && !words.empty()) return Wrong("use either tls or sslmode, not both");
  if (mode != nullptr && *mode == "require") {
    return Wrong(
        "sslmode=require does not verify the server; use tls=required, or "
        "tls=insecure-no-verify if that is intended");
  }
  if (Status set = ApplyTls(target, words); !set.ok()) return set.error();
  const std::string* hosts = target.Find("host");
  const bool several = hosts != nullptr && hosts->find(',') != std::string::npos;
  if (several) target.Default("target_session_attrs", "read-write");
  return target;
}

std::string* Target::Find(std::string_view name) {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [name](const auto& value) { return value.first == name; });
  return found == values_.end() ? nullptr : &found->second;
}

const std::string* Target::Find(std::string_view name) const {
  return const_cast<Target*>(this)->Find(name);  // NOLINT: it is not changed
}

std::vector<std::string> Target::names() const {
  const std::string* hosts = Find("host");
  if (hosts == nullptr || Find("hostaddr") != nullptr) return {};
  std::vector<std::string> names = Split(*hosts);
  std::erase_if(names, [](const std::string& host) {
    return host.empty() || host.front() == '/' || host.front() == '@';
  });
  return names;
}

bool Target::wants_primary() const {
  const std::string* hosts = Find("host");
  const std::string* wanted = Find("target_session_attrs");
  return hosts != nullptr && hosts->find(',') != std::string::npos && wanted != nullptr &&
         (*wanted == "read-write" || *wanted == "primary");
}

std::vector<Target> Target::Hosts() const {
  const std::string* hosts = Find("host");
  if (hosts == nullptr) return {*this};
  std::vector<Target> targets(Split(*hosts).size(), *this);
  for (const char* name : {"host", "hostaddr", "port"}) {
    const std::string* list = Find(name);
    if (list == nullptr) continue;
    const std::vector<std::string> values = Split(*list);
    if (values.size() != targets.size()) continue;  // one port for all
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i].Set(name, values[i]);
  }
  return targets;
}

void Target::Default(std::string_view name, std::string_view value) {
  if (Find(name) == nullptr) values_.emplace_back(name, value);
}

void Target::Set(std::string_view name, std::string_view value) {
  std::string* found = Find(name);
  if (found == nullptr) {
    values_.emplace_back(name, value);
  } else {
    *found = value;
  }
}

void Target::Rotate() {
  for (const char* name : {"host", "hostaddr", "port"}) {
    if (std::string* list = Find(name)) RotateList(*list);
  }
}

Target::Words Target::words() const {
  Words words;
  for (const auto& [name, value] : values_) {
    words.names.push_back(name.c_str());
    words.values.push_back(value.c_str());
  }
  words.names.push_back(nullptr);
  words.values.push_back(nullptr);
  return words;
}

}  // namespace weir::postgres
