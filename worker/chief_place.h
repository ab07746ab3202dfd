#ifndef PARASOL_WORKER_CHIEF_PLACE_H_
#define PARASOL_WORKER_CHIEF_PLACE_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace parasol {

// The right to run the chief at an address, which one process of a machine has
// until it ends, however it does. A second worker 0 that took part before its
// chief finds the port in use would take the first one's place in the job.
class ChiefPlace {
 public:
  // `task` and `address` of the worker that is to run the chief.
  //   InvalidArgument  another process has the place: names both, and says what
  //                    to do.
  static absl::StatusOr<ChiefPlace> Take(const std::string& task,
                                         const std::string& address);

 private:
  explicit ChiefPlace(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_CHIEF_PLACE_H_
