#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_COUNTS_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_COUNTS_H_

#include <cstdint>
#include <string>

namespace cuda_on_host {

// Numbers of calls that each cost a real device's host some microseconds. What
// a capture takes in counts once, and each launch of its graph as one call.
struct Counts {
  int64_t kernels = 0;        // launches of grids
  int64_t library_calls = 0;  // products and convolutions
  int64_t memsets = 0;
  // Copies to a device, to the host, and between arrays of one side.
  int64_t copies_in = 0;
  int64_t bytes_in = 0;
  int64_t copies_out = 0;
  int64_t bytes_out = 0;
  int64_t copies_within = 0;
  int64_t records = 0;            // events recorded
  int64_t stream_waits = 0;       // orders of a stream behind an event
  int64_t synchronizations = 0;   // waits of the host for an event or a stream
  int64_t device_selections = 0;  // calls of cudaSetDevice()
  int64_t graph_launches = 0;
};

// Returns the counts of the program so far.
Counts CountsSoFar();

// Two functions for tests. NoteWork() has the work be noted that is done from
// now on, and forgets what was noted; WorkOf() returns the notes of a device, a
// letter for each piece of work: "k" a kernel or a memset, "i" a copy to the
// device, "o" one from it, "s" what a rank brings to a sum of
// ncclCommInitRankConfig()'s ranks.
void NoteWork();
std::string WorkOf(int device);
// Notes a piece of work, if work is noted. Needs the runtime's lock.
void NoteDone(int device, char work);

// Returns the counts of the program, which the runtime adds to. Needs the
// runtime's lock.
Counts& TheCounts();

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_COUNTS_H_
