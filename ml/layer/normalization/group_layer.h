#ifndef PARASOL_ML_LAYER_NORMALIZATION_GROUP_LAYER_H_
#define PARASOL_ML_LAYER_NORMALIZATION_GROUP_LAYER_H_

#include <memory>
#include <string>

#include "ml/kernel/normalization/group_normalization.h"
#include "ml/layer/layer.h"

namespace parasol {

// Form of a layer that normalizes groups of channels: how, and the names of the
// variables that it multiplies by (ones at first) and adds (zeros); an empty
// name stands for none.
struct GroupLayerForm {
  GroupedChannels channels;  // one example's
  GroupForm form;
  std::string factor = {};
  std::string term = {};
};

// Returns the layer for inputs of `shape`.
std::unique_ptr<const Layer> NewGroupLayer(const GroupLayerForm& form,
                                           Shape shape);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_NORMALIZATION_GROUP_LAYER_H_
