#ifndef PARASOL_ML_INPUT_FORMAT_LIBSVM_SET_H_
#define PARASOL_ML_INPUT_FORMAT_LIBSVM_SET_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/input/format/example_set.h"
#include "proto/job.pb.h"

namespace parasol {

// Opens files of lines `label index:value …`, separated by blanks. A '#' begins
// a comment, and lines with nothing else are left out. The indices may be in
// any order.
//
// A dense input of n elements has value v at index - first_index and 0
// elsewhere; an index beyond it makes the record corrupt. An id input has the
// indices as they are in the file, with the values as weights.
//   NotFound, DataLoss, …  as for FindFiles and ReadWholeFile.
//   InvalidArgument        an input names other columns than "features".
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenLibsvmSet(
    const job::LibsvmDataset& libsvm, const SetOptions& options);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_LIBSVM_SET_H_
