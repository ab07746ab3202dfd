#ifndef PARASOL_TOOL_STATUS_ASKED_INSPECTION_H_
#define PARASOL_TOOL_STATUS_ASKED_INSPECTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/client/chief_client.h"
#include "proto/chief.pb.h"

namespace parasol {

// The things that tasks have shown, and the tasks that have not, or not all.
struct InspectedTasks {
  std::vector<wire::InspectedTask> tasks;
  std::vector<std::string> missing;
};

// Has the chief's tasks show what `request` asks for, under a number of its
// own, and waits until all have, for `limit` at most. Names on stderr, every
// 10 s, whom it waits for. Returns errors of ChiefClient::Inspect(), and
//   InvalidArgument  the server is no chief, or an older one.
//   Unavailable      (too) ask again: another inspection goes on, or what was
//                    shown is gone before all was here, for another one has
//                    begun or a process has ended.
absl::StatusOr<InspectedTasks> AskForInspection(ChiefClient& chief,
                                                wire::InspectRequest request,
                                                absl::Duration limit);

}  // namespace parasol

#endif  // PARASOL_TOOL_STATUS_ASKED_INSPECTION_H_
