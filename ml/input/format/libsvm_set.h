#ifndef PARASOL_ML_INPUT_FORMAT_LIBSVM_SET_H_
#define PARASOL_ML_INPUT_FORMAT_LIBSVM_SET_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/format/example_set.h"
#include "proto/job.pb.h"

namespace parasol {

// Settings by which lines become features.
struct LibsvmRules {
  LibsvmRules(const job::LibsvmDataset& spec, ModelInputs wanted);

  int64_t first_index;
  bool keep_negative_labels;
  ModelInputs inputs;
  // True if an input is dense: indices then begin with first_index; otherwise
  // they are ids, of any 64 bits.
  bool has_dense;
};

// Checks that each input reads the column "features" as it is.
//   InvalidArgument  names the input.
absl::Status CheckLibsvmInputs(const ModelInputs& inputs);

// Appends an example's features, without a label, from a text "index:value …".
//   DataLoss  the text is not a list of features, or an index is beyond an
//             input: names the part.
absl::Status AppendLibsvmFeatures(const LibsvmRules& rules,
                                  absl::string_view features, Batch& batch);

// Opens files of lines `label index:value …`, separated by blanks. A '#' begins
// a comment, and lines with nothing else are left out. The indices may be in
// any order.
//
// A dense input of n elements has value v at index - first_index and 0
// elsewhere; an index beyond it makes the record corrupt. An id input has the
// indices as they are in the file, with the values as weights.
//   DataLoss               -1 is to be read as 0, and both are labels.
//   NotFound, DataLoss, …  as for FindFiles and ReadWholeFile.
//   InvalidArgument        an input names other columns than "features".
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenLibsvmSet(
    const job::LibsvmDataset& libsvm, const SetOptions& options);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_LIBSVM_SET_H_
