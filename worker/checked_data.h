#ifndef PARASOL_WORKER_CHECKED_DATA_H_
#define PARASOL_WORKER_CHECKED_DATA_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cluster/client/chief_session.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

// Looks at a sample of a worker's training data, as `parasol check` does, and
// logs what it finds. A job that has trained with them before goes on all the
// same; whether it has, the chief of `session` says, for which this waits up to
// `limit`, unless `cancelled` returns true.
//   InvalidArgument  the data have faults: names them.
//   any other        as for ChiefSession::Await().
absl::Status CheckWorkerData(const job::Job& job, const Graph& graph,
                             const std::string& data_dir, ChiefSession& session,
                             absl::Duration limit,
                             const std::function<bool()>& cancelled);

// Logs with what a worker trains: `devices`, and `examples` in `replicas`; 0:
// not in step.
void LogTraining(const job::Job& job, const std::string& devices,
                 int64_t examples, int replicas);

}  // namespace parasol

#endif  // PARASOL_WORKER_CHECKED_DATA_H_
