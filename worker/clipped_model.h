#ifndef PARASOL_WORKER_CLIPPED_MODEL_H_
#define PARASOL_WORKER_CLIPPED_MODEL_H_

#include <memory>

#include "ml/model/model.h"
#include "proto/job.pb.h"

namespace parasol {

// `model` with its gradients clipped as `optimizer` says: by value, then each
// variable's by its norm, then all by their common norm. `model` itself if it
// says nothing.
//
// With global_clipnorm no gradient is ready before the backward pass is done:
// pushes don't overlap with it. A gradient is copied once. Gradients of rows
// are not clipped.
std::unique_ptr<Model> ClipGradients(std::unique_ptr<Model> model,
                                     const job::Optimizer& optimizer);

}  // namespace parasol

#endif  // PARASOL_WORKER_CLIPPED_MODEL_H_
