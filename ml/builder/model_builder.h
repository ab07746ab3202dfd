#ifndef PARASOL_ML_BUILDER_MODEL_BUILDER_H_
#define PARASOL_ML_BUILDER_MODEL_BUILDER_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace parasol {

class ModelBuilder;

// A value that a layer can read: an input of the model, or the output of a
// layer.
struct Value {
  ModelBuilder* builder = nullptr;
  std::string name;
};

// A model written in C++ instead of in a job file's text: both are job::Model,
// and one can be printed as the other.
//
//   ModelBuilder model;
//   Value x = model.DenseInput("input", {28, 28, 1});
//   x = layers::Conv2D(x, {.filters = 6, .kernel_size = {5, 5}});
//   x = layers::Flatten(x);
//   layers::Dense(x, {.units = 10});
//   model.SetLoss(SparseCategoricalCrossentropy());
//   const job::Model spec = model.Build();
//
// The layers are in ml/builder/layers.h, columns of inputs in columns.h, losses
// in losses.h. The layer that is added last is the model's output, unless
// AddOutput() says which are. Nothing is
// checked here: ResolveGraph() and Validate() report a model
// that is not valid.
class ModelBuilder {
 public:
  // Options of a table. Options that are not set have the job file's defaults.
  struct TableOptions {
    job::Initializer initializer = {};
    job::Optimizer optimizer = {};
  };

  ModelBuilder() = default;
  // Copies are forbidden, because Values point at the builder.
  ModelBuilder(const ModelBuilder&) = delete;
  ModelBuilder& operator=(const ModelBuilder&) = delete;

  // Adds an input. `shape` is the shape of one example. Without columns the
  // input reads the data set's only column, or the one that has the input's
  // name.
  Value DenseInput(absl::string_view name, absl::Span<const int64_t> shape,
                   absl::Span<const job::NumericColumn> columns = {});
  Value IdInput(absl::string_view name,
                absl::Span<const job::IdColumn> columns = {});
  // Adds an input of ids that are the `length` steps of a sequence; of a longer
  // list it keeps the last or first ones.
  Value SequenceInput(absl::string_view name, const job::IdColumn& column,
                      int64_t length,
                      job::IdSequence::Keep keep = job::IdSequence::LAST);
  // Returns the mask of such an input.
  static Value MaskOf(const Value& sequence);

  // Adds a table and returns its name, for the layers that read it.
  std::string SparseTable(absl::string_view name, int64_t width,
                          const TableOptions& options);
  std::string SparseTable(absl::string_view name, int64_t width) {
    return SparseTable(name, width, TableOptions());
  }

  // Adds a layer that reads `inputs`. A layer without a name gets one from its
  // kind and position, as in a job file: "dense_1".
  Value AddLayer(job::Layer layer, absl::Span<const Value> inputs);

  void SetLoss(const job::Loss& loss);
  void AddMetric(const job::Metric& metric);

  // One of several outputs of the model, in the place of a loss and metrics for
  // the last layer.
  struct OutputOptions {
    job::Loss loss = {};
    job::CsvLabel label = {};
    std::string mask = {};
    double weight = 1;
    std::vector<job::Metric> metrics = {};
  };
  void AddOutput(absl::string_view name, const Value& value,
                 const OutputOptions& options);

  // Returns the model as a person would write it: names and inputs that are the
  // defaults are left out.
  job::Model Build() const;

 private:
  bool IsDefaultInput(int layer) const;

  job::Model model_;
  // Indices of the layers that were added without a name.
  std::set<int> unnamed_;
};

}  // namespace parasol

#endif  // PARASOL_ML_BUILDER_MODEL_BUILDER_H_
