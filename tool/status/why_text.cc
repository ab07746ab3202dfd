#include "tool/status/why_text.h"

#include <cctype>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cluster/progress/task_notes.h"
#include "deploy/local/run_result.h"

namespace parasol {
namespace {

// Shorter waits are part of every step.
constexpr double kNamedSeconds = 1;
constexpr size_t kMaxNamedWaits = 8;

std::string Sentence(std::string text) {
  if (!text.empty()) text[0] = absl::ascii_toupper(text[0]);
  return absl::StrCat(text, ".");
}

double SecondsOf(const google::protobuf::Duration& time) {
  return time.seconds() + time.nanos() / 1e9;
}

// "worker/0 waits for ps/1 since 3.2s".
std::vector<std::string> Waits(const wire::JobStatus& status) {
  std::vector<std::string> waits;
  for (const wire::TaskStatus& task : status.task()) {
    for (const wire::PsWait& wait : task.ps_wait()) {
      const double seconds = SecondsOf(wait.since());
      if (seconds < kNamedSeconds) continue;
      waits.push_back(absl::StrCat(
          NameOfTask(task), " waits for ", wait.ps(), " since ",
          absl::FormatDuration(absl::Milliseconds(100) *
                               static_cast<int64_t>(seconds * 10))));
    }
  }
  if (waits.size() > kMaxNamedWaits) {
    const size_t more = waits.size() - kMaxNamedWaits;
    waits.resize(kMaxNamedWaits);
    waits.push_back(absl::StrCat(more, " more waits"));
  }
  return waits;
}

// "ps/1 acts for ps/0, which was lost: start it again", of each such ps.
std::string ActingText(const wire::JobStatus& status) {
  std::string text;
  for (const wire::TaskStatus& task : status.task()) {
    if (task.acted_by().empty()) continue;
    absl::StrAppend(&text, " ", task.acted_by(), " acts for ", NameOfTask(task),
                    ", which was lost: start it again.");
  }
  return text;
}

}  // namespace

std::string WhyText(const wire::JobStatus& status) {
  std::string text =
      absl::StrCat("The job is in phase ",
                   absl::AsciiStrToLower(wire::JobPhase_Name(status.phase())),
                   " at step ", WithThousands(status.global_step()));
  if (status.end_step() > 0) {
    absl::StrAppend(&text, " of ", WithThousands(status.end_step()));
  }
  absl::StrAppend(&text, ". ");
  if (status.finding_size() == 0) {
    return absl::StrCat(text,
                        status.phase() == wire::COMPLETE
                            ? "Nothing bounds it any more."
                            : "The chief does not say what bounds it.",
                        ActingText(status), "\n");
  }
  absl::StrAppend(&text, Sentence(status.finding(0).text()));
  for (int i = 1; i < status.finding_size(); ++i) {
    absl::StrAppend(&text, i == 1 ? " Next: " : "; ", status.finding(i).text());
  }
  if (status.finding_size() > 1) text += ".";
  const std::vector<std::string> waits = Waits(status);
  if (!waits.empty()) {
    absl::StrAppend(&text, " Waits: ", absl::StrJoin(waits, ", "), ".");
  }
  return absl::StrCat(text, ActingText(status), "\n");
}

std::string StacksText(const std::vector<wire::InspectedTask>& tasks,
                       const std::vector<std::string>& missing) {
  std::string text;
  for (const wire::InspectedTask& task : tasks) {
    for (const wire::InspectionPart& part : task.part()) {
      if (part.stacks().empty()) continue;
      absl::StrAppend(&text, "\n", task.task(), "\n\n", part.stacks());
    }
  }
  for (const std::string& task : missing) {
    absl::StrAppend(&text, "\n", task,
                    "\n\n  can't be heard: it has shown no stacks\n");
  }
  return text;
}

}  // namespace parasol
