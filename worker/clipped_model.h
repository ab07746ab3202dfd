#ifndef PARASOL_WORKER_CLIPPED_MODEL_H_
#define PARASOL_WORKER_CLIPPED_MODEL_H_

#include <memory>

#include "ml/model/model.h"
#include "proto/job.pb.h"

namespace parasol {

// `model` with its gradients clipped as the job's optimizers say: by value,
// then each variable's by its norm, then all by their common norm. Of a sparse
// table the batch's rows together are what a variable's gradient is; one with
// an optimizer of its own is clipped as that one says, and alone. Variables
// that are not trained are left as they are. `model` itself if no optimizer
// says anything.
//
// With global_clipnorm no gradient is ready before the backward pass is done:
// pushes don't overlap with it. A gradient is copied once.
std::unique_ptr<Model> ClipGradients(std::unique_ptr<Model> model,
                                     const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_WORKER_CLIPPED_MODEL_H_
