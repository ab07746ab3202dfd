#ifndef PARASOL_ML_INPUT_FORMAT_TF_EXAMPLE_H_
#define PARASOL_ML_INPUT_FORMAT_TF_EXAMPLE_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ml/input/feature/value.h"

namespace parasol {

// tf.Example, in the wire format of protocol buffers:
//
//   Example  = 1: Features         Feature   = one of
//   Features = 1: map entry *        1: BytesList = 1: bytes *
//   entry    = 1: name               2: FloatList = 1: float *, perhaps packed
//              2: Feature            3: Int64List = 1: varint *, perhaps packed
//
// Other fields are passed over. If a name appears twice, the last feature
// counts. Views point into the bytes passed in.

// Calls `visit` with each feature's name and its serialized Feature.
//   DataLoss  the bytes are not an Example; or an error that `visit` returned.
absl::Status ForEachFeature(
    absl::string_view example,
    absl::FunctionRef<absl::Status(absl::string_view name,
                                   absl::string_view feature)>
        visit);

// Puts the values of a Feature into `values`, replacing its contents.
//   DataLoss  the bytes are not a Feature.
absl::Status ReadFeature(absl::string_view feature,
                         std::vector<FieldValue>& values);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_TF_EXAMPLE_H_
