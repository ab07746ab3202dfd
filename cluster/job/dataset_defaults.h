#ifndef PARASOL_CLUSTER_JOB_DATASET_DEFAULTS_H_
#define PARASOL_CLUSTER_JOB_DATASET_DEFAULTS_H_

#include "proto/job.pb.h"

namespace parasol {

// Fills in the defaults of `train` and `eval`, if the job has them. Where both
// have the same format, `eval` takes the fields that it does not set from
// `train`: the way its records are read, the mean and stddev of images, and
// on_corrupt. It does not take the files, random crops and flips, or the split.
// The default meaning of a label of -1 depends on the loss.
void FillDatasetDefaults(job::Job& job);

// Fills in the defaults of the columns of the model's inputs. An input's
// default shape is the number of its columns.
void FillModelInputDefaults(job::Model& model);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_DATASET_DEFAULTS_H_
