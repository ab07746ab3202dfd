#ifndef PARASOL_BASE_THREAD_PRIORITY_H_
#define PARASOL_BASE_THREAD_PRIORITY_H_

namespace parasol {

// Makes the calling thread, and those that it starts from now on, yield to the
// others of the machine: `niceness` is 0 (nothing changes) to 19 (what others
// leave), as nice(1) has it for processes. For threads that compute for long
// beside threads that others wait for. It can't be taken back without
// privileges. Logs when the system refuses.
void LowerThreadPriority(int niceness);

}  // namespace parasol

#endif  // PARASOL_BASE_THREAD_PRIORITY_H_
