#include "loop/peers/copied_values.h"

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace parasol {

absl::Status CopyValues(StoredVariables& from, StoredVariables& to) {
  for (size_t i = 0; i < from.specs().size(); ++i) {
    for (int array = 0; array < from.num_arrays(i); ++array) {
      ASSIGN_OR_RETURN(const absl::Span<const float> elements,
                       from.Read(i, array));
      RETURN_IF_ERROR(to.Write(i, array, elements)) << from.specs()[i].name;
    }
    to.SetUpdates(i, from.updates()[i]);
  }
  return absl::OkStatus();
}

}  // namespace parasol
