#ifndef PARASOL_ML_INPUT_FORMAT_LIBSVM_SET_H_
#define PARASOL_ML_INPUT_FORMAT_LIBSVM_SET_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/input/format/example_set.h"
#include "proto/job.pb.h"

namespace parasol {

// Lines `label index:value …`, separated by blanks; what follows a '#', and
// lines with nothing else, are comments. The indices may be in any order.
//
// A dense input of n elements has value v at index - first_index, 0 elsewhere;
// an index beyond it is corrupt. An id input has the indices as they are in the
// file, with the values as weights.
//   NotFound, DataLoss, …  as for FindFiles and ReadWholeFile.
//   InvalidArgument        an input wants other columns than "features".
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenLibsvmSet(
    const job::LibsvmDataset& libsvm, const SetOptions& options);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_LIBSVM_SET_H_
