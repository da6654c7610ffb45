#pragma once

#include <string>

namespace weir::bench {

/// Events per second when each event is a transaction of its own (look for the event, lock a
/// window, count, insert), on `connections` connections for `seconds`. Locked windows are skipped
/// rather than waited for, which is the quickest of the plain ways. Every event asks for the same
/// time.
double MeasurePlainWay(const std::string& url, int connections, double seconds);

}  // namespace weir::bench
