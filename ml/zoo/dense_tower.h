#ifndef PARASOL_ML_ZOO_DENSE_TOWER_H_
#define PARASOL_ML_ZOO_DENSE_TOWER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ml/builder/model_builder.h"

namespace parasol::zoo {

// Adds the deep part of a model that adds up logits: dense layers "hidden_1", …
// of the widths `hidden`, each with a relu, then "deep_logit", [1]. If
// `dropout`, a rate, is not 0, each hidden layer is followed by a layer
// "dropout_1", …. "deep_logit" has no bias, because another part of the model
// has one.
Value DenseTower(Value x, const std::vector<int64_t>& hidden, double dropout);

// Adds dense layers `name`_1, … of the widths `hidden`, each with a relu.
Value HiddenLayers(Value x, const std::string& name,
                   const std::vector<int64_t>& hidden);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_DENSE_TOWER_H_
