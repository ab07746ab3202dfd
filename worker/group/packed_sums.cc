#include "worker/group/packed_sums.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cluster/replica_sum/first_non_finite.h"
#include "cluster/replica_sum/vector_sum.h"

namespace parasol {

std::vector<std::vector<float>>& PackedSums::values() {
  for (size_t i = values_.size(); i < packs_.count(); ++i) {
    values_.emplace_back(packs_.elements(i));
  }
  return values_;
}

absl::Status PackedSums::CheckFinite(int64_t step) {
  for (size_t i = 0; i < packs_.num_variables(); ++i) {
    if (variables_[i].frozen) continue;
    const absl::Span<const float> sum =
        packs_.ValuesOf(i, values()[packs_.place(i).pack]);
    const size_t element = FirstNonFinite(
        reinterpret_cast<const std::byte*>(sum.data()), sum.size());
    if (element == sum.size()) continue;
    return absl::OutOfRangeError(absl::StrCat(
        "the gradient of \"", variables_[i].name, "\" in step ", step,
        " is not finite at element ", element,
        ": lower the learning rate, or set worker.non_finite_loss: CONTINUE"));
  }
  return absl::OkStatus();
}

void PackedSums::Apply(ParameterStore& parameters) {
  for (std::vector<float>& sum : values()) {
    DivideBy(absl::MakeSpan(sum), static_cast<float>(replicas_));
  }
  for (size_t i = 0; i < parameters.num_variables(); ++i) {
    if (!variables_[i].frozen) {
      parameters.ApplyBlock(i, /*first=*/0,
                            packs_.ValuesOf(i, values_[packs_.place(i).pack]));
    }
    parameters.CountUpdate(i);
  }
}

}  // namespace parasol
