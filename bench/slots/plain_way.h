#pragma once

#include <string>

namespace weir::bench {

/// Events per second when each event is a transaction of its own (look for the event, lock a
/// window, count, insert), on `connections` connections for `seconds`. Locked windows are skipped
/// instead of waited for, which is the fastest of the plain ways. Every event requests the same
/// time.
double MeasurePlainWay(const std::string& url, int connections, double seconds);

/// Events claimed and done per second when each is a row of a plain queue: one transaction takes
/// the oldest and records its lease, another records its end. Without caps, tenants or history;
/// locked rows are skipped.
double MeasurePlainClaims(const std::string& url, int connections, double seconds);

}  // namespace weir::bench
