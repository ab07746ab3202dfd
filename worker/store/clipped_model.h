#ifndef PARASOL_WORKER_STORE_CLIPPED_MODEL_H_
#define PARASOL_WORKER_STORE_CLIPPED_MODEL_H_

#include <memory>

#include "ml/model/model.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns `model` with its gradients clipped as the job's optimizers say: first
// by value, then each variable's gradient by its norm, then all gradients by
// their common norm. The gradient of a sparse table has all rows of the batch
// together. A layer or table with an optimizer of its own is clipped as that
// optimizer says, and takes no part in the common norm of the job's; layers
// whose optimizers are equal have one. Variables that are not trained are not
// clipped. Returns `model` itself if no optimizer clips.
//
// No gradient is ready before the backward pass is done if global_clipnorm is
// set, so that pushes do not overlap with the pass. Each gradient is copied
// once.
std::unique_ptr<Model> ClipGradients(std::unique_ptr<Model> model,
                                     const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_CLIPPED_MODEL_H_
