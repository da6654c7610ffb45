#pragma once

#include <functional>
#include <string>

#include "admin/undoable.h"
#include "notify/ledger.h"
#include "protocol/http/router.h"

namespace weir::notify {

/// The HTTP API of the ledger: messages, dead letters, users and their preferences.
/// docs/reference/notify-api.md describes every path.
///
/// Thread-safe: handlers run on any reactor. Must outlive the router's last request.
class LedgerApi {
 public:
  /// `ledger` must outlive this.
  explicit LedgerApi(Ledger& ledger) : ledger_(ledger) {}

  using Protect = std::function<http::Handler(http::Handler)>;
  using ProtectNamed = std::function<http::Handler(std::string action, http::Handler)>;
  struct Guards {
    Protect look;         ///< wraps what operators read
    ProtectNamed act;     ///< wraps what operators do, which is logged as `action`
    Protect preferences;  ///< wraps what changes a user's preferences
  };
  /// Call before the service starts.
  void AddTo(http::Router& router, const Guards& guards);

  /// Users' preferences, of kind "preferences".
  admin::Undoable preferences();

 private:
  using Request = http::Request;
  using Reply = http::Reply;

  void FindMessage(const Request& request, Reply reply);
  void ListMessages(const Request& request, Reply reply);
  void ListDead(const Request& request, Reply reply);
  void FindDead(const Request& request, Reply reply);
  void ReplayDead(const Request& request, Reply reply);
  void DropDead(const Request& request, Reply reply);
  void ListUsers(const Request& request, Reply reply);
  void FindPreferences(const Request& request, Reply reply);
  void PutPreferences(const Request& request, Reply reply);

  using Act = void (Ledger::*)(std::vector<std::string>, Ledger::Done<std::vector<std::string>>);
  void OnDead(const Request& request, Reply reply, Act act, const char* done);

  Ledger& ledger_;
};

}  // namespace weir::notify
