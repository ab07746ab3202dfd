#ifndef PARASOL_CLUSTER_INSPECTION_THREAD_STACKS_H_
#define PARASOL_CLUSTER_INSPECTION_THREAD_STACKS_H_

#include <string>

#include "absl/time/time.h"

namespace parasol {

// Returns the stacks of the threads of this process, as text: thread `first`
// before the others, then the ones that run; of more than 512 threads it says
// how many are not shown. Threads with one stack are shown together. A thread
// that does not answer in `limit` (it blocks signals, or stands still in the
// kernel) is named, and all together take ten times that at most. Each thread
// is interrupted by a signal, SIGRTMIN + 6, for some microseconds; the names of
// functions are found on the caller's thread. Thread-safe; one call at a time
// goes on.
std::string StacksOfThreads(int first, absl::Duration limit);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_INSPECTION_THREAD_STACKS_H_
