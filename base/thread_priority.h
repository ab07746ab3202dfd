#ifndef PARASOL_BASE_THREAD_PRIORITY_H_
#define PARASOL_BASE_THREAD_PRIORITY_H_

namespace parasol {

// Lowers the priority of the calling thread, and of the threads that it starts
// from now on. `niceness` is as for nice(1): 0 changes nothing, 19 leaves the
// thread only the time that other threads do not use. Meant for threads that
// compute for long beside threads that other tasks wait for. Can't be undone
// without privileges. Logs if the system refuses.
void LowerThreadPriority(int niceness);

}  // namespace parasol

#endif  // PARASOL_BASE_THREAD_PRIORITY_H_
