#include "ml/zoo/esmm.h"

#include "absl/strings/str_cat.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"
#include "ml/zoo/dense_tower.h"

namespace parasol::zoo {
namespace {

job::CsvLabel Column(const std::string& name) {
  job::CsvLabel label;
  label.set_column(name);
  return label;
}

// The probability of `name`.
Value Tower(const Value& x, const std::string& name,
            const std::vector<int64_t>& hidden) {
  return layers::Dense(HiddenLayers(x, absl::StrCat(name, "_hidden"), hidden),
                       {.units = 1, .activation = job::SIGMOID, .name = name});
}

}  // namespace

job::Model Esmm(const EsmmOptions& options) {
  ModelBuilder model;
  const Value ids = model.IdInput("fields", options.fields);
  const std::string table =
      model.SparseTable("embeddings", options.embedding_width);
  const Value rows =
      layers::Embedding(ids, {.table = table, .name = "embedding"});
  const Value x = layers::Flatten(rows, {"embedded"});
  const Value ctr = Tower(x, "ctr", options.hidden);
  const Value cvr = Tower(x, "cvr", options.hidden);
  const Value ctcvr = layers::Multiply({ctr, cvr}, {"ctcvr"});
  const job::Loss loss = BinaryCrossentropyOfProbabilities();
  model.AddOutput("ctr", ctr, {.loss = loss, .label = Column(options.click)});
  model.AddOutput("ctcvr", ctcvr,
                  {.loss = loss, .label = Column(options.conversion)});
  model.AddOutput("cvr", cvr,
                  {.loss = loss,
                   .label = Column(options.conversion),
                   .mask = options.click,
                   .weight = 0});
  return model.Build();
}

}  // namespace parasol::zoo
