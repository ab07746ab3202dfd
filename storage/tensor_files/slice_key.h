#ifndef PARASOL_STORAGE_TENSOR_FILES_SLICE_KEY_H_
#define PARASOL_STORAGE_TENSOR_FILES_SLICE_KEY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "proto/tensorflow_checkpoint.pb.h"

namespace parasol {

// Returns the key under which a TensorBundle has one slice of a tensor, in
// TensorFlow's OrderedCode.
std::string SliceKey(absl::string_view tensor,
                     const tensor_bundle::TensorSliceProto& slice);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_SLICE_KEY_H_
