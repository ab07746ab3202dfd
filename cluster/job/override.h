#ifndef PARASOL_CLUSTER_JOB_OVERRIDE_H_
#define PARASOL_CLUSTER_JOB_OVERRIDE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace parasol {

// Changes one field: "optimizer.adam.learning_rate=0.001". An existing element
// of a list is named by its index, from 0: "model.layer[1].dense.units=256". A
// path through a member of a choice selects that member:
// "optimizer.sgd.momentum=0.9" turns Adam into SGD. The value is written as in
// a job file after the colon, but a string needs no quotes. A message is
// written in braces: "optimizer.sgd={}". In them, too, a field or a choice
// twice is a fault.
//   InvalidArgument  quotes the override, and names the value or the part of
//                    the path at fault, with the fields that exist there.
//                    `job` is unchanged.
absl::Status ApplyOverride(job::Job& job, absl::string_view override);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_OVERRIDE_H_
