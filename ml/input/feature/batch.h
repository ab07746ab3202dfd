#ifndef PARASOL_ML_INPUT_FEATURE_BATCH_H_
#define PARASOL_ML_INPUT_FEATURE_BATCH_H_

#include <cstdint>
#include <string>
#include <vector>

namespace parasol {

// A tensor input of a model, on the host.
struct DenseFeature {
  std::vector<int64_t> shape = {};  // shape of one example: {28, 28}
  std::vector<float> values = {};   // [size, shape...], row-major
};

// An id input. Example i has the ids and weights [offsets[i], offsets[i + 1]).
struct IdFeature {
  std::vector<int32_t> offsets = {};  // [size + 1], from 0
  std::vector<uint64_t> ids = {};
  std::vector<float> weights = {};  // one for each id; empty: all 1
};

// The labels of examples for one of a model's named outputs.
struct Target {
  // [size, width], with the width that the output's loss asks for.
  std::vector<float> labels = {};
  // [size], factors of the examples' weights. 0: the example does not count for
  // this output, and its label means nothing.
  std::vector<float> weights = {};
  // Number of examples in the step's batch, of which this batch may be a part,
  // over the number of those that count; 0 if none does. A further factor of
  // all weights, with which a mean over all examples is one over those that
  // count.
  float scale = 1;
};

// The values of a column that a loss or a metric reads beside labels, one for
// each example: either keys or numbers.
struct ExampleValues {
  std::vector<uint64_t> keys = {};  // equal for equal values of the column
  std::vector<float> numbers = {};
};

// Examples that go through a model together.
struct Batch {
  int64_t size = 0;  // number of examples
  // The part of the data set whose batches it is of: a replica of a step has
  // its own; 0 where all workers share one order.
  int shard = 0;
  // Number of batches that the training has had before it, over all epochs, as
  // far as the order says: the step's, in training in step.
  int64_t number = 0;
  // The model's dense inputs and its id inputs, each in the model's order.
  std::vector<DenseFeature> dense = {};
  std::vector<IdFeature> ids = {};
  // Labels [size, width], with the width that the loss asks for: 1 for a class
  // number. Empty if the model has named outputs.
  std::vector<float> labels = {};
  // One for each of the model's named outputs.
  std::vector<Target> targets = {};
  std::vector<float> weights = {};  // [size]; empty: all 1
  // One for each of ModelInputs::columns.
  std::vector<ExampleValues> columns = {};
  // Texts [size] of each of ModelInputs::kept.
  std::vector<std::vector<std::string>> kept = {};
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_BATCH_H_
