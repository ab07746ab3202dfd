#include "ml/zoo/dense_tower.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "ml/builder/layers.h"

namespace parasol::zoo {

Value DenseTower(Value x, const std::vector<int64_t>& hidden, double dropout) {
  for (size_t i = 0; i < hidden.size(); ++i) {
    x = layers::Dense(x, {.units = hidden[i],
                          .activation = job::RELU,
                          .name = absl::StrCat("hidden_", i + 1)});
    if (dropout > 0) {
      x = layers::Dropout(x, dropout, {absl::StrCat("dropout_", i + 1)});
    }
  }
  return layers::Dense(x,
                       {.units = 1, .use_bias = false, .name = "deep_logit"});
}

Value HiddenLayers(Value x, const std::string& name,
                   const std::vector<int64_t>& hidden) {
  for (size_t i = 0; i < hidden.size(); ++i) {
    x = layers::Dense(x, {.units = hidden[i],
                          .activation = job::RELU,
                          .name = absl::StrCat(name, "_", i + 1)});
  }
  return x;
}

}  // namespace parasol::zoo
