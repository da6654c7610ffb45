#pragma once

#include <string>

namespace weir::bench {

/// Events per second when each event is a transaction of its own (look for the event, lock a
/// window, count, insert), on `connections` connections for `seconds`. Locked windows are skipped
/// rather than waited for, which is the quickest of the plain ways. Every event asks for the same
/// time.
double MeasurePlainWay(const std::string& url, int connections, double seconds);

/// Events per second that are claimed and done when each is a row of a plain queue: a transaction
/// that takes the oldest and notes its lease, another that notes its end. Without a cap, a tenant
/// or a history, and locked rows are skipped.
double MeasurePlainClaims(const std::string& url, int connections, double seconds);

}  // namespace weir::bench
