#ifndef PARASOL_CLUSTER_JOB_LAYER_DEFAULTS_H_
#define PARASOL_CLUSTER_JOB_LAYER_DEFAULTS_H_

#include "proto/job.pb.h"

namespace parasol {

// Fills in the defaults of one layer, at index `position` in model.layer: its
// name is "<kind>_<position>"; the other defaults are its kind's (ml/layer).
void FillLayer(int position, job::Layer& layer);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_LAYER_DEFAULTS_H_
