#include <simdjson.h>

#include <iostream>
#include <memory>

#include "command.h"
#include "console.h"
#include "json_fields.h"
#include "protocol/http/error.h"
#include "remote.h"

// weir check: asks for permits as a client would. weir explain: why the answer is what it is.

namespace weir::app {
namespace {

namespace dom = simdjson::dom;

struct Words {
  Remote remote;
  std::string key;
  std::string domain;
  std::vector<std::string> entries;
  std::int64_t cost = 1;
  bool peek = false;

  void AddTo(CLI::App& word) {
    word.add_option("bucket", key, "A bare key, such as user-123");
    word.add_option("-e,--entry", entries, "Instead: an entry of a descriptor, such as user=42");
    word.add_option("--domain", domain, "The domain of the descriptor");
    word.add_option("--cost", cost, "How many permits")->capture_default_str();
    remote.AddTo(word);
  }

  /// Nothing wrong with them; else says so.
  bool Valid() const {
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
};

std::string CheckBody(const Words& words) {
  std::string body = "{";
  if (words.entries.empty()) {
    body += "\"key\":";
    http::AppendJsonString(body, words.key);
  } else {
    if (!words.domain.empty()) {
      body += "\"domain\":";
      http::AppendJsonString(body, words.domain);
      body += ',';
    }
    body += "\"descriptors\":[[";
    for (std::size_t i = 0; i < words.entries.size(); ++i) {
      const std::size_t equals = words.entries[i].find('=');
      body += i == 0 ? "{\"key\":" : ",{\"key\":";
      http::AppendJsonString(body, words.entries[i].substr(0, equals));
      body += ",\"value\":";
      http::AppendJsonString(body, words.entries[i].substr(equals + 1));
      body += '}';
    }
    body += "]]";
  }
  return body + ",\"cost\":" + std::to_string(words.cost) + "}";
}

bool IsAllowed(dom::element object) {
  bool allowed = false;
  return object["allowed"].get(allowed) == simdjson::SUCCESS && allowed;
}

void PrintDecision(dom::element answer) {
  const bool allowed = IsAllowed(answer);
  std::cout << (allowed ? "allowed" : "limited");
  if (const std::string policy = TextOf(answer, "policy"); !policy.empty()) {
    std::cout << " by " << Shown(policy);
  }
  std::cout << ": " << NumberOf(answer, "remaining") << " of " << NumberOf(answer, "limit")
            << " left";
  const std::int64_t retry = NumberOf(answer, "retryAfterMs");
  if (!allowed && retry > 0) std::cout << "; retry in " << retry << " ms";
  if (!allowed && retry == 0) std::cout << "; never: the cost is above the limit";
  if (const std::int64_t lease = NumberOf(answer, "lease"); lease != 0) {
    std::cout << "; lease " << lease;
  }
  std::cout << '\n';
}

int RunCheck(const Words& words) {
  if (!words.Valid()) return kExitUsage;
  return words.remote.Ask("POST", words.peek ? "/v1/peek" : "/v1/check", CheckBody(words),
                          [&](const ServiceReply& reply) -> int {
                            dom::parser parser;
                            dom::element answer;
                            if (parser.parse(reply.body).get(answer) != simdjson::SUCCESS) {
                              return Fail({Code::kUnavailable, "the answer is not ours"});
                            }
                            if (!words.remote.json) PrintDecision(answer);
                            return IsAllowed(answer) ? kExitOk : kExitNo;
                          });
}

int RunExplain(const Words& words) {
  if (!words.Valid()) return kExitUsage;
  std::string target = "/admin/explain?cost=" + std::to_string(words.cost);
  if (!words.key.empty()) target += "&key=" + UrlEscaped(words.key);
  if (!words.domain.empty()) target += "&domain=" + UrlEscaped(words.domain);
  for (const std::string& entry : words.entries) {
    const std::size_t equals = entry.find('=');
    target +=
        "&" + UrlEscaped(entry.substr(0, equals)) + "=" + UrlEscaped(entry.substr(equals + 1));
  }
  return words.remote.Ask("GET", target, {}, [&](const ServiceReply& reply) -> int {
    dom::parser parser;
    dom::element answer;
    dom::array policies;
    if (parser.parse(reply.body).get(answer) != simdjson::SUCCESS ||
        answer["policies"].get(policies) != simdjson::SUCCESS) {
      return Fail({Code::kUnavailable, "the answer is not ours"});
    }
    const int code = IsAllowed(answer) ? kExitOk : kExitNo;
    if (words.remote.json) return code;
    PrintDecision(answer);
    std::cout << Shown(TextOf(answer, "why"), 300) << '\n';
    Table table({"policy", "quota", ">left", "bucket", "why"});
    for (const dom::element policy : policies) {
      table.Add({TextOf(policy, "policy"), TextOf(policy, "quota"),
                 std::to_string(NumberOf(policy, "remaining")), TextOf(policy, "bucket"),
                 TextOf(policy, "why")});
    }
    std::cout << '\n' << table.ToString();
    return code;
  });
}

void ConfigureCheck(CLI::App& word, int& exit_code) {
  auto words = std::make_shared<Words>();
  words->AddTo(word);
  word.add_flag("--peek", words->peek, "Only look; charge nothing");
  word.footer(
      "Exits with 0 if allowed and 1 if limited.\n\n  weir check user-123 --cost 5\n"
      "  weir check -e user=42 -e route=/v1/pay --domain api");
  word.callback([words, &exit_code] { exit_code = RunCheck(*words); });
}

void ConfigureExplain(CLI::App& word, int& exit_code) {
  auto words = std::make_shared<Words>();
  words->AddTo(word);
  word.footer("Charges nothing. Exits with 0 if it would be allowed and 1 if not.");
  word.callback([words, &exit_code] { exit_code = RunExplain(*words); });
}

const Command kCheck("check", "Ask a running service for permits.", ConfigureCheck);
const Command kExplain("explain", "Tell which policies meet a request and what they would say.",
                       ConfigureExplain);

}  // namespace
}  // namespace weir::app
