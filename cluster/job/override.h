#ifndef PARASOL_CLUSTER_JOB_OVERRIDE_H_
#define PARASOL_CLUSTER_JOB_OVERRIDE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace parasol {

// Changes one field: "optimizer.adam.learning_rate=0.001". An element of a
// list that is there already is named by its index, from 0:
// "model.layer[1].dense.units=256". Naming a member of a choice makes it the
// choice: "optimizer.sgd.momentum=0.9" turns Adam into SGD. The value is what
// a job file would have after the colon, but a string needs no quotes; that of
// a message is in braces: "optimizer.sgd={}".
//   InvalidArgument  quotes the override and names the part of the path, with
//                    the fields that exist there, or the value. `job` is as
//                    it was.
absl::Status ApplyOverride(job::Job& job, absl::string_view override);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_OVERRIDE_H_
