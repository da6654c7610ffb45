#pragma once

// What `weir policy diff` and `apply` report about the policies of a file and those of a service.

#include <string>
#include <vector>

#include "policy/policy_documents.h"
#include "remote/service_client.h"
#include "weir/result.h"

namespace weir::app {

/// A document and the service's version of it.
struct Compared {
  PolicyDocument document;
  bool exists = false;          ///< stored by the admin API
  std::string defined_in = {};  ///< if it is a policy of the service's files: where
  std::vector<FieldChange> changes = {};

  bool same() const { return changes.empty() && (exists || !defined_in.empty()); }
};

/// `now` is the service's answer about the policy of the document.
Result<Compared> CompareWith(PolicyDocument document, const ServiceReply& now);

/// On standard output: what applying it does, and to which fields.
void Print(const Compared& one, bool json);

}  // namespace weir::app
