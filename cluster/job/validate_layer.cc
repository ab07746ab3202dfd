#include "cluster/job/validate_layer.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/did_you_mean.h"
#include "base/field_checks.h"
#include "base/shown_text.h"
#include "ml/layer/kinds/layer_kinds.h"

namespace parasol {
namespace {

// Checks that the table that a layer reads is one of the model's. A kind checks
// whether its layer needs one.
absl::Status ValidateTable(const std::string& path, const std::string& name,
                           const job::Model& model) {
  if (name.empty()) return absl::OkStatus();
  std::vector<std::string> tables;
  for (const job::SparseTable& table : model.sparse_table()) {
    if (table.name() == name) return absl::OkStatus();
    tables.push_back(table.name());
  }
  return Fault(path, absl::StrCat("\"", ShownText(name, 100),
                                  "\" is the name of no model.sparse_table",
                                  DidYouMean(name, tables)));
}

}  // namespace

Faults ValidateLayer(int position, const job::Model& model) {
  Faults faults;
  const std::string path = absl::StrCat("model.layer[", position, "]");
  const job::Layer& layer = model.layer(position);
  const LayerKind* const kind = KindOf(layer);
  if (kind == nullptr) {
    faults.Add(Fault(path, "no kind is chosen: dense, conv2d, activation, …"));
    return faults;
  }
  if (layer.name().empty()) {
    faults.Add(Missing(absl::StrCat(path, ".name")));
  }
  const std::string of_kind = absl::StrCat(path, ".", KindNameOf(layer));
  if (kind->table != nullptr) {
    faults.Add(ValidateTable(absl::StrCat(of_kind, ".table"),
                             kind->table(layer), model));
  }
  if (kind->check != nullptr) faults.Add(kind->check(of_kind, layer));
  return faults;
}

}  // namespace parasol
