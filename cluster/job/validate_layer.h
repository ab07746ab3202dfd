#ifndef PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_

#include "base/faults.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks that layer `position` of `model`, with its defaults filled in, has the
// fields that it needs, each in its range. Does not check that shapes fit each
// other. Returns what is wrong:
//   InvalidArgument  "model.layer[<position>].<field>: …", with the value.
Faults ValidateLayer(int position, const job::Model& model);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_
