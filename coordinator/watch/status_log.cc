#include "coordinator/watch/status_log.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cluster/progress/followed_text.h"

namespace parasol {
namespace {

std::string Progress(const wire::JobStatus& status) {
  std::string line = absl::StrCat("step ", status.global_step());
  if (status.end_step() > 0) absl::StrAppend(&line, "/", status.end_step());
  if (status.has_loss())
    absl::StrAppendFormat(&line, ", loss %.4f", status.loss());
  if (status.examples_per_second() > 0) {
    absl::StrAppendFormat(&line, ", %.0f examples/s",
                          status.examples_per_second());
  }
  if (status.due_evaluations() > 1) {
    absl::StrAppend(&line, ", ", status.due_evaluations(),
                    " evaluations due, the newest one is ",
                    status.has_evaluated_step()
                        ? absl::StrCat("of step ", status.evaluated_step())
                        : "none");
  }
  return line;
}

// " for 1m20s"; empty for less than a second.
std::string ForHowLong(const wire::JobStatus& status) {
  if (status.waited().seconds() <= 0) return "";
  return absl::StrCat(
      " for ", absl::FormatDuration(absl::Seconds(status.waited().seconds())));
}

}  // namespace

std::vector<std::string> StatusLog::Lines(const wire::JobStatus& status,
                                          absl::Time now) {
  std::vector<std::string> lines;
  if (status.phase() != phase_) {
    phase_ = status.phase();
    since_ = now;
    lines.push_back(
        absl::StrCat(wire::JobPhase_Name(phase_), ", ", Progress(status)));
    if (!status.failure().empty()) {
      lines.back() += absl::StrCat(": ", status.failure());
    }
    if (phase_ >= wire::COMPLETE) next_ = now + kLeaveTime;
  }
  if (now < next_) return lines;
  next_ = now + kInterval;
  if (!status.missing_task().empty()) {
    lines.push_back(absl::StrCat("waiting for ",
                                 absl::StrJoin(status.missing_task(), ", "),
                                 ForHowLong(status)));
  }
  if (status.has_awaited_evaluation() && !status.awaited_task().empty()) {
    lines.push_back(
        absl::StrCat("waiting for ", absl::StrJoin(status.awaited_task(), ", "),
                     " to evaluate step ", status.awaited_evaluation(), " for ",
                     absl::FormatDuration(
                         absl::Seconds(status.evaluation_waited().seconds()))));
  } else if (!status.awaited_task().empty()) {
    lines.push_back(absl::StrCat("others wait for the steps of ",
                                 absl::StrJoin(status.awaited_task(), ", "),
                                 ForHowLong(status)));
  }
  if (!status.staying_task().empty()) {
    lines.push_back(absl::StrCat(
        "waiting for ", absl::StrJoin(status.staying_task(), ", "),
        " to leave, for at most ", status.staying_limit().seconds(), "s more"));
  }
  if (!status.trouble().empty()) lines.push_back(status.trouble());
  if (status.followed().has_waited()) {
    lines.push_back(WaitForData(status.followed()));
  }
  if (phase_ == wire::LOADING || phase_ == wire::FINISHING) {
    lines.push_back(absl::StrCat(
        wire::JobPhase_Name(phase_), " since ",
        absl::FormatDuration(absl::Floor(now - since_, absl::Seconds(1)))));
  }
  if (phase_ == wire::TRAINING) lines.push_back(Progress(status));
  return lines;
}

LogFields JobFields(const wire::JobStatus& status) {
  LogFields fields;
  fields.AddText("phase", wire::JobPhase_Name(status.phase()));
  fields.AddCount("step", status.global_step());
  if (status.end_step() > 0) fields.AddCount("end_step", status.end_step());
  if (status.has_loss()) fields.AddNumber("loss", status.loss());
  if (status.examples_per_second() > 0) {
    fields.AddNumber("examples_per_second", status.examples_per_second());
  }
  return fields;
}

}  // namespace parasol
