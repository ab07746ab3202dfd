#include "cluster/client/wait_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace parasol {
namespace {

// What a job that misses no task waits for; empty: nothing.
std::string WorkOf(wire::JobPhase phase) {
  switch (phase) {
    case wire::WAITING_FOR_PS:
      return "the chief";
    case wire::LOADING:
      return "the ps to load the variables";
    case wire::FINISHING:
      return "the chief to write the last checkpoint";
    default:
      return "";
  }
}

}  // namespace

std::string MissingTasksOf(const wire::HeartbeatResponse& state) {
  return absl::StrJoin(state.missing_task(), ", ");
}

std::optional<std::string> WaitLog::Line(const wire::HeartbeatResponse& state,
                                         absl::Time now) {
  std::string what = MissingTasksOf(state);
  if (what.empty()) what = WorkOf(state.phase());
  if (what != what_) {
    what_ = std::move(what);
    since_ = now;
    next_ = now + kInterval;
    return std::nullopt;
  }
  if (what_.empty() || now < next_) return std::nullopt;
  next_ = now + kInterval;
  const absl::Duration waited = absl::Floor(now - since_, absl::Seconds(1));
  return absl::StrCat("waiting for ", what_, ", since ",
                      absl::FormatDuration(waited), " (",
                      wire::JobPhase_Name(state.phase()), ")",
                      state.trouble().empty() ? "" : ": ", state.trouble());
}

}  // namespace parasol
