#ifndef PARASOL_CLUSTER_JOB_LAYER_DEFAULTS_H_
#define PARASOL_CLUSTER_JOB_LAYER_DEFAULTS_H_

#include "proto/job.pb.h"

namespace parasol {

// FillDefaults() of one layer, at this place in model.layer: its name is
// "<kind>_<position>", the rest is as in tf.keras.layers.
void FillLayer(int position, job::Layer& layer);

// Of an initializer whose kind is chosen.
void FillInitializer(job::Initializer& initializer);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_LAYER_DEFAULTS_H_
