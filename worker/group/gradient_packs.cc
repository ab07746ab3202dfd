#include "worker/group/gradient_packs.h"

namespace parasol {

GradientPacks GradientPacks::Of(const std::vector<VariableSpec>& variables,
                                int64_t bytes_per_pack) {
  std::vector<size_t> elements;
  for (const VariableSpec& variable : variables) {
    elements.push_back(variable.frozen ? 0 : variable.elements());
  }
  return GradientPacks(elements, bytes_per_pack);
}

GradientPacks::GradientPacks(const std::vector<size_t>& variable_elements,
                             int64_t bytes_per_pack)
    : elements_(variable_elements), places_(variable_elements.size()) {
  bool is_open = false;
  for (size_t i = places_.size(); i-- > 0;) {
    if (elements_[i] == 0) continue;
    if (!is_open) packs_.emplace_back();
    Pack& pack = packs_.back();
    places_[i] = {.pack = packs_.size() - 1, .first = pack.elements};
    pack.elements += elements_[i];
    if (pack.variables == 0) pack.range.end = i + 1;
    pack.range.begin = i;
    ++pack.variables;
    is_open = bytes_per_pack == 0 || pack.elements * sizeof(float) <=
                                         static_cast<size_t>(bytes_per_pack);
  }
}

}  // namespace parasol
