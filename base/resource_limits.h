#ifndef PARASOL_BASE_RESOURCE_LIMITS_H_
#define PARASOL_BASE_RESOURCE_LIMITS_H_

#include <pthread.h>

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

// The limits that the system sets a process: descriptors and threads.
namespace parasol {

// Prepares a process for its limits; main() calls it when it has read its
// flags. As many descriptors may be open as the system allows. A thread that
// can't be started, and that nobody handles, ends the process with a line that
// names the limit and exit code 2, in place of an abort. With fewer threads
// allowed than the smallest task has, that comes now.
void ApplySystemLimits();

// Raises the limit of open descriptors to what the system allows without asking
// anybody, kMostDescriptors at most. Returns the limit.
int64_t RaiseDescriptorLimit();
inline constexpr int64_t kMostDescriptors = int64_t{1} << 20;
int64_t DescriptorLimit();

// Returns true for errors of calls that found no descriptor or memory for one.
bool IsOutOfDescriptors(int error);
// Returns what to say then: "no descriptor is left of 1024 (ulimit -n): …".
std::string DescriptorsHint();
// Returns InvalidArgument, with that, unless so many can be opened. Libraries
// end the process without a cause when they can't.
absl::Status CheckDescriptorsAreLeft(int count);

// Starts a thread that ends when `*may_end` is set; returns 0 or an error, as
// pthread_create() does.
using ThreadStarter =
    absl::FunctionRef<int(pthread_t* thread, void* (*run)(void*), void* arg)>;

// Starts `count` threads at the same time, which end at once.
//   InvalidArgument  the system refuses one: names the limit. A process that
//                    met it later would end in a library, without a cause.
absl::Status CheckThreadsAllowed(int count);
absl::Status CheckThreadsAllowed(int count, ThreadStarter start);

// Has the process end with a line that names the limit, and exit code 2, when a
// thread can't be started and nobody handles it.
void NameThreadLimitAtEnd();

}  // namespace parasol

#endif  // PARASOL_BASE_RESOURCE_LIMITS_H_
