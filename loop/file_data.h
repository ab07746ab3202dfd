#ifndef PARASOL_LOOP_FILE_DATA_H_
#define PARASOL_LOOP_FILE_DATA_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "loop/dataset.h"

namespace parasol::loop {

// A data set of a job, in files, as a program reads it.
struct FileData {
  // The data set as in a job file, with the size of the batches of all replicas
  // together: "mnist { … } batch_size: 64 shuffle_buffer: 60000". Without a
  // shuffle_buffer the examples come in their order.
  std::string dataset;
  // The inputs of each example, as of a job's model: "input_shape: [28, 28, 1]"
  // or "input { name: 'x' dense { … } }".
  std::string inputs;
  // What the label is: a class, which becomes an int64 tensor [examples];
  // numbers, float32 [examples, label_width]; or nothing.
  enum class Label { kClass, kNumbers, kNone };
  Label label = Label::kClass;
  int64_t label_width = 1;
  // Directory that the paths of `dataset` are relative to.
  std::string data_dir;
  uint64_t seed = 0;
};

// Opens the data set and returns its batches of one epoch: a tensor for each
// input, float32 [examples, shape…], or int64 [examples, ids] of ids, then the
// labels. The ids of an input's columns follow each other, as in jobs: column 1
// has the ids behind column 0's. Repeat() reads further epochs, each in another
// order. Their files are as for InputPipeline (ml/input): a large set's files
// stay as they are while it is read. A batch whose examples have different
// numbers of ids is an error.
//   InvalidArgument  a text is not what it should be; and errors of
//                    InputPipeline::Open() (ml/input).
absl::StatusOr<Dataset> FromFiles(const FileData& data);

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_FILE_DATA_H_
