#ifndef PARASOL_CLUSTER_JOB_DATASET_DEFAULTS_H_
#define PARASOL_CLUSTER_JOB_DATASET_DEFAULTS_H_

#include "proto/job.pb.h"

namespace parasol {

// The defaults of `train` and `eval`, where there are any. `eval` takes what it
// does not set from `train`, if it has the same format: how its records are to
// be read, mean and stddev of images, on_corrupt; not the files, nor random
// crops and flips, nor the split. What a label of -1 is depends on the loss.
void FillDatasetDefaults(job::Job& job);

// Of the columns of the model's inputs. An input's shape is the number of its
// columns.
void FillModelInputDefaults(job::Model& model);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_DATASET_DEFAULTS_H_
