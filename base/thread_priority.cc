#include "base/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace parasol {
namespace {

void WarnOfRefusal(const char* what) {
  LOG(WARNING) << what << " of a thread: " << std::strerror(errno);
}

}  // namespace

// On Linux a niceness is a thread's, whatever POSIX says of processes
// (setpriority(2)). A thread of SCHED_BATCH that has waited does not take the
// core from one that is running (sched(7)).
void LowerThreadPriority(int niceness) {
  if (niceness <= 0) return;
  const id_t thread = static_cast<id_t>(gettid());
  const int present = getpriority(PRIO_PROCESS, thread);
  if (setpriority(PRIO_PROCESS, thread, std::max(present, niceness)) != 0) {
    WarnOfRefusal("the niceness");
  }
  if (sched_getscheduler(0) != SCHED_OTHER) return;  // somebody's choice
  const sched_param no_priority = {};
  if (sched_setscheduler(0, SCHED_BATCH, &no_priority) != 0) {
    WarnOfRefusal("the scheduling policy");
  }
}

}  // namespace parasol
