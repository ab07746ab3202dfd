#include "ml/layer/variable_spec.h"

#include <functional>
#include <numeric>

namespace parasol {

int64_t VariableSpec::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1},
                         std::multiplies<>());
}

}  // namespace parasol
