#ifndef PARASOL_CLUSTER_JOB_LAYER_DEFAULTS_H_
#define PARASOL_CLUSTER_JOB_LAYER_DEFAULTS_H_

#include "proto/job.pb.h"

namespace parasol {

// Fills in the defaults of one layer, at index `position` in model.layer: its
// name is "<kind>_<position>"; the other defaults are those of tf.keras.layers.
void FillLayer(int position, job::Layer& layer);

// Fills in the defaults of an initializer whose kind is chosen.
void FillInitializer(job::Initializer& initializer);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_LAYER_DEFAULTS_H_
