#ifndef PARASOL_CLUSTER_PROGRESS_TASK_NOTES_H_
#define PARASOL_CLUSTER_PROGRESS_TASK_NOTES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "proto/chief.pb.h"

namespace parasol {

// Lines about tasks that are slower than others, and about those without which
// a training goes on: one when this begins, and one when it is over; and about
// tasks as which two processes run; and the
// warnings of the status. Pure.
class TaskNotes {
 public:
  struct Note {
    std::string line;
    bool is_warning = false;
  };

  // Returns the lines that the chief's answer adds to those before it.
  std::vector<Note> Notes(const wire::JobStatus& status);

 private:
  void NoteSlow(const wire::JobStatus& status, std::vector<Note>& notes);
  void NoteAbsent(const wire::JobStatus& status, std::vector<Note>& notes);
  void NoteDoubled(const wire::JobStatus& status, std::vector<Note>& notes);
  void NoteWarnings(const wire::JobStatus& status, std::vector<Note>& notes);

  std::set<std::string> slow_;
  std::set<std::string> absent_;
  std::map<std::string, std::string> doubled_;  // key: the task's name
  std::set<std::string> warnings_;
};

// Returns "worker/1", or "chief".
std::string NameOfTask(const wire::TaskStatus& task);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PROGRESS_TASK_NOTES_H_
