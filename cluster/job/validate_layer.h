#ifndef PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_

#include "base/faults.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks that layer `position` of `model`, with its defaults filled in, has the
// fields that it needs, each in its range. Does not check that shapes fit each
// other. Returns what is wrong:
//   InvalidArgument  "model.layer[<position>].<field>: …", with the value.
Faults ValidateLayer(int position, const job::Model& model);

// Checks the sparse tables of a job, with their defaults filled in: each field
// in its range, and names that no other table or variable has. `graph` is null
// if it is not known. Returns what is wrong:
//   InvalidArgument  "model.sparse_table[<position>].<field>: …", with the
//                    value.
Faults ValidateSparseTables(const job::Job& job, const Graph* graph);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_LAYER_H_
