#pragma once

// RapidCheck generators of quotas and traces, and how to print them when a property fails.

#include <rapidcheck.h>

#include <ostream>

#include "unit/algorithm/trace.h"
#include "weir/decision.h"
#include "weir/quota.h"

namespace weir {

void showValue(const Quota& quota, std::ostream& out);
void showValue(const Decision& decision, std::ostream& out);

}  // namespace weir

namespace weir::algorithm {

void showValue(const Trace& trace, std::ostream& out);

// All limits from 1 to 2^40, all windows from a nanosecond to a century, the ends more often.
rc::Gen<Quota> AnyTokenBucket();
rc::Gen<Quota> AnyFixedWindow();
rc::Gen<Quota> AnySlidingLog();
rc::Gen<Quota> AnySlidingCounter();
rc::Gen<Quota> AnyConcurrency();
rc::Gen<Quota> AnyAnchoredWindow();

/// Up to 100 steps, which shrink well; see LongTrace for long ones.
rc::Gen<Trace> AnyTrace();

}  // namespace weir::algorithm
