#ifndef PARASOL_ML_LAYER_FIELD_LOOKUP_FIELDS_H_
#define PARASOL_ML_LAYER_FIELD_LOOKUP_FIELDS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"

namespace parasol {

// Checks the fields that embedding and embedding_bag have in common, but not
// that the model has the table.
//   InvalidArgument  "<path>.<field>: …", with the value.
template <typename Lookup>
absl::Status CheckLookup(const std::string& path, const Lookup& lookup) {
  if (lookup.table().empty()) return Missing(absl::StrCat(path, ".table"));
  return RequireAtLeastZero(absl::StrCat(path, ".l2"), lookup.l2());
}

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_FIELD_LOOKUP_FIELDS_H_
