#include "cluster/job/layer_defaults.h"

#include "absl/strings/str_cat.h"
#include "base/set_default.h"
#include "ml/layer/kinds/layer_kinds.h"

namespace parasol {

void FillLayer(int position, job::Layer& layer) {
  const LayerKind* const kind = KindOf(layer);
  PARASOL_SET_DEFAULT(
      layer, name,
      absl::StrCat(kind == nullptr ? "layer" : KindNameOf(layer), "_",
                   position));
  if (kind != nullptr && kind->fill_defaults != nullptr) {
    kind->fill_defaults(layer);
  }
}

}  // namespace parasol
