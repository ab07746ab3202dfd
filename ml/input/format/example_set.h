#ifndef PARASOL_ML_INPUT_FORMAT_EXAMPLE_SET_H_
#define PARASOL_ML_INPUT_FORMAT_EXAMPLE_SET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/file/set_memory.h"

namespace parasol {

// Decodes examples of a set, which must outlive it, with memory of its own. For
// one thread.
class ExampleDecoder {
 public:
  virtual ~ExampleDecoder() = default;

  // Appends features, label and weight of `example` to `batch`, which
  // ClearBatch() has made; batch.size is not changed. All randomness, if any,
  // comes from `random`. After an error the batch may have a part of the
  // example.
  //   DataLoss  the record is corrupt: names the file and the offset.
  virtual absl::Status Append(int64_t example, uint64_t random,
                              Batch& batch) = 0;

  // Brings what Append() will read of `example` near: a shuffled set is read at
  // random places. Optional.
  virtual void Prefetch(int64_t /*example*/) {}
};

// A data set, in memory or in files that stay on a disk, for the inputs of one
// model. Its examples are numbered through all of its files. Thread-safe.
class ExampleSet {
 public:
  virtual ~ExampleSet() = default;

  // Number of each file's first example, then the number of all examples.
  virtual const std::vector<int64_t>& file_starts() const = 0;

  virtual std::unique_ptr<ExampleDecoder> NewDecoder() const = 0;

  // True if the files have more examples, which SetOptions::sample_bytes left
  // out.
  virtual bool is_sample() const { return false; }

  int64_t size() const { return file_starts().back(); }
};

// Options for opening a set of any format.
struct SetOptions {
  // Directory that the dataset's paths are relative to.
  std::string data_dir;
  ModelInputs inputs;
  // Bytes that are read of all files together, unpacked, as the first ones of
  // some of them (data_files.h); 0: all. A data source of a user's own is read
  // whole.
  int64_t sample_bytes = 0;
  // True if corrupt files are accepted: their readable parts become examples,
  // and the unreadable ones become examples that the decoder refuses. Otherwise
  // a corrupt file is an error at once.
  bool skip_corrupt = false;
  // True if labels and weights are not read, and need not be there: an example
  // then has a label that means nothing.
  bool without_labels = false;
  // Columns of labels and masks that the inputs do not say, which are then not
  // read either, and need not be there.
  std::vector<std::string> label_columns = {};
  // Tests choose it.
  SetMemory memory = {};
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_EXAMPLE_SET_H_
