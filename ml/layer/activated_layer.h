#ifndef PARASOL_ML_LAYER_ACTIVATED_LAYER_H_
#define PARASOL_ML_LAYER_ACTIVATED_LAYER_H_

#include <memory>

#include "ml/layer/layer.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns `layer`, which has no activation yet (a dense, a conv2d), with
// `activation` on its output. The layer's own kernel computes it if it can,
// otherwise it is computed in place afterwards. A softmax is over the last
// axis.
std::unique_ptr<const Layer> WithActivation(std::unique_ptr<const Layer> layer,
                                            job::Activation activation);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_ACTIVATED_LAYER_H_
