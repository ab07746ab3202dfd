#ifndef PARASOL_WORKER_GROUP_GRADIENT_PACKS_H_
#define PARASOL_WORKER_GROUP_GRADIENT_PACKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ml/layer/variable_spec.h"
#include "ml/model/variable_layout.h"

namespace parasol {

// The packs in which the gradients of variables travel between workers: whole
// variables in the order of the backward pass, the last variable first. A pack
// is closed once it has more bytes than the limit. So all workers of a job have
// the same packs.
class GradientPacks {
 public:
  // The place of a variable's elements among a pack's.
  struct Place {
    size_t pack = 0;
    size_t first = 0;
  };

  // `variable_elements`: of each variable; one of 0 is in no pack.
  // `bytes_per_pack` 0: all variables are one pack.
  GradientPacks(const std::vector<size_t>& variable_elements,
                int64_t bytes_per_pack);
  // Returns the packs of `variables`, of which frozen ones are in no pack.
  static GradientPacks Of(const std::vector<VariableSpec>& variables,
                          int64_t bytes_per_pack);

  size_t count() const { return packs_.size(); }
  size_t num_variables() const { return places_.size(); }
  size_t elements(size_t pack) const { return packs_[pack].elements; }
  // Number of variables in a pack.
  size_t variables(size_t pack) const { return packs_[pack].variables; }
  // Returns the variables from the first to the last one of a pack.
  VariableRange range(size_t pack) const { return packs_[pack].range; }
  // The variable must have elements.
  const Place& place(size_t variable) const { return places_[variable]; }
  // Returns the elements of a variable in the elements of its pack.
  absl::Span<const float> ValuesOf(size_t variable,
                                   absl::Span<const float> pack) const {
    return pack.subspan(places_[variable].first, elements_[variable]);
  }

 private:
  struct Pack {
    size_t elements = 0;
    size_t variables = 0;
    VariableRange range = {};
  };

  std::vector<size_t> elements_;  // index: variable
  std::vector<Place> places_;     // index: variable
  std::vector<Pack> packs_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_GRADIENT_PACKS_H_
