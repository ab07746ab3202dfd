#include "ml/zoo/dlrm.h"

#include <string>

#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"
#include "ml/zoo/dense_tower.h"

namespace parasol::zoo {

job::Model Dlrm(const DlrmOptions& options) {
  ModelBuilder model;
  const Value fields = model.IdInput("fields", options.fields);
  const int64_t numbers = options.numeric.size();
  std::vector<int64_t> bottom = options.bottom;
  bottom.push_back(options.embedding_width);
  const Value dense =
      HiddenLayers(model.DenseInput("numeric", {numbers}, options.numeric),
                   "bottom", bottom);
  const Value row = layers::Reshape(dense, {1, options.embedding_width},
                                    {"numeric_embedding"});
  const std::string table =
      model.SparseTable("embeddings", options.embedding_width);
  const Value embedding =
      layers::Embedding(fields, {.table = table, .name = "embedding"});
  const Value all =
      layers::Concatenate({row, embedding}, /*axis=*/0, {"embeddings_of_all"});
  const Value pairs = layers::DotInteraction(all, {.name = "interaction"});
  const Value top = HiddenLayers(
      layers::Concatenate({dense, pairs}, {"top_input"}), "top", options.top);
  layers::Dense(top, {.units = 1, .name = "logit"});
  model.SetLoss(BinaryCrossentropy());
  return model.Build();
}

}  // namespace parasol::zoo
