#include "cluster/client/task_identity.h"

#include <unistd.h>

#include <iterator>
#include <random>

#include "absl/strings/str_cat.h"

namespace parasol {

uint64_t NewIncarnation() {
  std::random_device random;
  return (uint64_t{random()} << 32 | random()) | 1;
}

wire::Task NewTask(const TaskConfig& config) {
  wire::Task task;
  task.set_role(std::string(RoleName(config.role)));
  task.set_index(config.index);
  task.set_incarnation(NewIncarnation());
  return task;
}

std::string NameOfThisProcess() {
  char host[256] = {};
  if (gethostname(host, std::size(host) - 1) != 0) host[0] = '\0';
  return absl::StrCat(host, ", process ", getpid());
}

std::string WithPort(absl::string_view address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

}  // namespace parasol
