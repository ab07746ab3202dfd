#ifndef PARASOL_ML_INPUT_FORMAT_EXAMPLE_SET_H_
#define PARASOL_ML_INPUT_FORMAT_EXAMPLE_SET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/model_inputs.h"

namespace parasol {

// Takes examples of a set apart, with memory of its own. For one thread; the
// set outlives it.
class ExampleDecoder {
 public:
  virtual ~ExampleDecoder() = default;

  // Appends features, label and weight of `example` to a batch that
  // ClearBatch() has made; batch.size is not touched. What is random about it,
  // if anything, is taken from `random`. After an error the batch may have a
  // part of the example.
  //   DataLoss  the record is corrupt: names the file and the offset.
  virtual absl::Status Append(int64_t example, uint64_t random,
                              Batch& batch) = 0;
};

// A data set, in memory, for the inputs of one model. Its examples are numbered
// through all of its files. Thread-safe.
class ExampleSet {
 public:
  virtual ~ExampleSet() = default;

  // Of each file the number of its first example, and then how many there are.
  virtual const std::vector<int64_t>& file_starts() const = 0;

  virtual std::unique_ptr<ExampleDecoder> NewDecoder() const = 0;

  int64_t size() const { return file_starts().back(); }
};

// What opening a set takes beside what its format says.
struct SetOptions {
  // Directory that the dataset's paths are relative to.
  std::string data_dir;
  ModelInputs inputs;
  // What can be read of a corrupt file is an example, and what can't is one
  // that its decoder refuses. Otherwise that is an error at once.
  bool skip_corrupt = false;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_EXAMPLE_SET_H_
