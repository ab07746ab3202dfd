#ifndef PARASOL_TOOL_STATUS_TRACE_JSON_H_
#define PARASOL_TOOL_STATUS_TRACE_JSON_H_

#include <string>
#include <vector>

#include "proto/chief.pb.h"

namespace parasol {

// The contents of a trace, for one line about it.
struct TraceSummary {
  std::vector<std::string> tasks;  // tasks with spans
  int64_t spans = 0;
  int64_t dropped = 0;
  // Time from the first span's beginning to the last one's end.
  double seconds = 0;
  // Most that two tasks' clocks are apart, in seconds.
  double clock_error = 0;
};

// Returns a trace as JSON of Chrome's trace events, which Perfetto opens: each
// task is a process, each track a thread, or several where its spans overlap
// without one having the other. Times are the chief's, from the first span on.
// Pure.
std::string TraceJson(const std::vector<wire::InspectedTask>& tasks,
                      TraceSummary& summary);

// Returns the line. `missing` are tasks that have shown nothing, or not all.
std::string TraceLine(const TraceSummary& summary, const std::string& file,
                      const std::vector<std::string>& missing);

}  // namespace parasol

#endif  // PARASOL_TOOL_STATUS_TRACE_JSON_H_
