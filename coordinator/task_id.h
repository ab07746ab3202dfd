#ifndef PARASOL_COORDINATOR_TASK_ID_H_
#define PARASOL_COORDINATOR_TASK_ID_H_

#include <compare>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/chief.pb.h"

namespace parasol {

// A place in the cluster, independent of the process that holds it.
struct TaskId {
  std::string role;
  int index = 0;

  static TaskId Of(const wire::Task& task) {
    return {task.role(), task.index()};
  }

  // Returns for instance "ps/1".
  std::string ToString() const { return absl::StrCat(role, "/", index); }

  friend auto operator<=>(const TaskId&, const TaskId&) = default;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_TASK_ID_H_
