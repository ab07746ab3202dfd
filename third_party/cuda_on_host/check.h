#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_CHECK_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_CHECK_H_

#include <cstddef>
#include <cstdint>

#include "third_party/cuda_on_host/order.h"

// Checks what the threads of a grid read and write. GCC is told to instrument
// .cu files as for ThreadSanitizer, whose functions instrumentation.cc has
// instead. Ends the program with one line if a thread
//   touches host memory, memory of a device that is no peer, or memory outside
//   of an allocation;
//   reads shared memory that its block has not written;
//   touches a word that another thread writes, with no barrier between.
namespace cuda_on_host {

// The thread of a grid that runs, and where its stack lies.
struct Runner {
  int device = 0;
  uint64_t block = 0;
  int thread = -1;
  // False outside of a grid and in the stand-in's own functions, which share
  // instrumented templates with the kernels.
  bool is_checked = false;
  const char* stack = nullptr;
  size_t stack_bytes = 0;
};
extern Runner runner;

// True in the thread of the host that runs a grid whose accesses are checked.
// Other threads of the process run instrumented code meanwhile: functions that
// both use are linked once.
extern constinit thread_local bool checks_grid;

// Checks nothing as long as it lasts, in a thread of a grid.
class Unchecked {
 public:
  Unchecked() {
    runner.is_checked = false;
    EndWatch();
  }
  ~Unchecked() {
    BeginWatch();
    runner.is_checked = true;
  }
  Unchecked(const Unchecked&) = delete;
  Unchecked& operator=(const Unchecked&) = delete;
};

// Points in a grid's life, which tell accesses apart that have an order. The
// accesses of threads of the host that run no grid are not checked.
void StartGrid();
void StartBlock();
void PassBarrier();
void EndGrid();

enum class Access { kRead, kWrite, kAtomic };

// Checks an access to memory outside of the stack of the thread that runs.
void CheckMemory(const char* address, size_t bytes, Access access);

// Checks an access of the thread that runs; does nothing outside of a grid.
inline void CheckAccess(const void* where, size_t bytes, Access access) {
  if (!checks_grid || !runner.is_checked || bytes == 0) return;
  const char* const address = static_cast<const char*>(where);
  // A thread's own stack, to which most accesses are.
  if (address >= runner.stack && address < runner.stack + runner.stack_bytes) {
    return;
  }
  CheckMemory(address, bytes, access);
}

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_CHECK_H_
