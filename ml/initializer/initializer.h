#ifndef PARASOL_ML_INITIALIZER_INITIALIZER_H_
#define PARASOL_ML_INITIALIZER_INITIALIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace parasol {

// Writes the initial values of elements [first, first + out.size()) of the
// flattened variable `name`. A value depends on (seed, name, shape, element)
// only, not on how the variable is split: Philox4x32-10 keyed by seed and name,
// counted by element. Fans come from the whole `shape`.
//   InvalidArgument  the initializer is not set or a parameter is out of range,
//                    or the elements are not in the shape.
absl::Status Initialize(const job::Initializer& initializer, uint64_t seed,
                        absl::string_view name, absl::Span<const int64_t> shape,
                        int64_t first, absl::Span<float> out);

}  // namespace parasol

#endif  // PARASOL_ML_INITIALIZER_INITIALIZER_H_
