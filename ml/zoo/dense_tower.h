#ifndef PARASOL_ML_ZOO_DENSE_TOWER_H_
#define PARASOL_ML_ZOO_DENSE_TOWER_H_

#include <cstdint>
#include <vector>

#include "ml/builder/model_builder.h"

namespace parasol::zoo {

// The deep part of a model that adds up logits: dense layers "hidden_1", … of
// these widths, each with a relu (and behind it "dropout_1", … where `dropout`,
// a rate, is not 0), then "deep_logit", [1], without a bias: another part has
// it.
Value DenseTower(Value x, const std::vector<int64_t>& hidden, double dropout);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_DENSE_TOWER_H_
