#include "cluster/job/validate_layer.h"

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/status_macros.h"
#include "ml/layer/kinds/layer_kinds.h"

namespace parasol {
namespace {

// Checks that the table that a layer reads is one of the model's. A kind checks
// whether its layer needs one.
absl::Status ValidateTable(const std::string& path, const std::string& name,
                           const job::Model& model) {
  const auto is_meant = [&name](const job::SparseTable& table) {
    return table.name() == name;
  };
  if (name.empty() || std::any_of(model.sparse_table().begin(),
                                  model.sparse_table().end(), is_meant)) {
    return absl::OkStatus();
  }
  return Fault(path, absl::StrCat("\"", absl::CHexEscape(name.substr(0, 100)),
                                  "\" is the name of no model.sparse_table"));
}

}  // namespace

absl::Status ValidateLayers(const job::Model& model) {
  for (int i = 0; i < model.layer_size(); ++i) {
    const std::string path = absl::StrCat("model.layer[", i, "]");
    const job::Layer& layer = model.layer(i);
    const LayerKind* const kind = KindOf(layer);
    if (kind == nullptr) {
      return Fault(path, "no kind is chosen: dense, conv2d, activation, …");
    }
    if (layer.name().empty()) return Missing(absl::StrCat(path, ".name"));
    const std::string of_kind = absl::StrCat(path, ".", KindNameOf(layer));
    if (kind->table != nullptr) {
      RETURN_IF_ERROR(ValidateTable(absl::StrCat(of_kind, ".table"),
                                    kind->table(layer), model));
    }
    if (kind->check != nullptr) {
      RETURN_IF_ERROR(kind->check(of_kind, layer));
    }
  }
  return absl::OkStatus();
}

}  // namespace parasol
