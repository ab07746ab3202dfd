#include "cluster/progress/task_notes.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace parasol {

std::string NameOfTask(const wire::TaskStatus& task) {
  if (task.task().role() == "chief") return "chief";
  return absl::StrCat(task.task().role(), "/", task.task().index());
}

std::vector<TaskNotes::Note> TaskNotes::Notes(const wire::JobStatus& status) {
  std::vector<Note> notes;
  NoteSlow(status, notes);
  NoteAbsent(status, notes);
  NoteDoubled(status, notes);
  NoteWarnings(status, notes);
  return notes;
}

// What is lost, or at the job's end, is not quick again.
void TaskNotes::NoteSlow(const wire::JobStatus& status,
                         std::vector<Note>& notes) {
  std::set<std::string> slow;
  for (const wire::TaskStatus& task : status.task()) {
    const std::string name = NameOfTask(task);
    if (!task.slow().empty()) {
      if (!slow_.contains(name)) {
        notes.push_back({absl::StrCat(name, " is slow: ", task.slow()),
                         /*is_warning=*/true});
      }
      slow.insert(name);
    } else if (slow_.contains(name) && task.alive() &&
               status.phase() == wire::TRAINING) {
      notes.push_back({absl::StrCat(name, " is no longer slow")});
    }
  }
  slow_ = std::move(slow);
}

void TaskNotes::NoteAbsent(const wire::JobStatus& status,
                           std::vector<Note>& notes) {
  std::set<std::string> absent;
  for (const wire::AbsentTask& task : status.absent_task()) {
    absent.insert(task.task());
    if (absent_.contains(task.task())) continue;
    notes.push_back(
        {absl::StrCat(task.task(),
                      task.was_there() ? " is gone" : " has not come",
                      ": the training goes on without it; look at its log"),
         /*is_warning=*/true});
  }
  for (const wire::TaskStatus& task : status.task()) {
    const std::string name = NameOfTask(task);
    if (!task.alive() || !absent_.contains(name)) continue;
    notes.push_back({absl::StrCat(name, " is there")});
  }
  absent_ = std::move(absent);
}

void TaskNotes::NoteDoubled(const wire::JobStatus& status,
                            std::vector<Note>& notes) {
  for (const wire::TaskStatus& task : status.task()) {
    const std::string name = NameOfTask(task);
    std::string& noted = doubled_[name];
    if (noted == task.doubled()) continue;
    noted = task.doubled();
    if (noted.empty()) continue;
    notes.push_back({absl::StrCat(name, ": ", noted,
                                  "; run one process for each task of "
                                  "TF_CONFIG"),
                     /*is_warning=*/true});
  }
}

void TaskNotes::NoteWarnings(const wire::JobStatus& status,
                             std::vector<Note>& notes) {
  for (const std::string& line : status.warning()) {
    if (!warnings_.insert(line).second) continue;
    notes.push_back({line, /*is_warning=*/true});
  }
}

}  // namespace parasol
