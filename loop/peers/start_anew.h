#ifndef PARASOL_LOOP_PEERS_START_ANEW_H_
#define PARASOL_LOOP_PEERS_START_ANEW_H_

#include "absl/status/status.h"
#include "base/descriptor.h"

// A process that takes its own place: main() runs again, with the same
// arguments, environment and process id, and nothing else is left but a file.
namespace parasol {

// Executes this process's binary again, and leaves it `kept`, if that is open.
// What was written to stdout is flushed first. Returns only if it can't.
//   Internal  the system refuses it; says why.
absl::Status StartAnew(Descriptor kept);

// Returns the file that StartAnew() has left this process; none if the process
// was started otherwise. Call it once, before there are other threads.
Descriptor FileKept();

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_START_ANEW_H_
