#include "ml/loss/loss_spec.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/loss/class_weights.h"
#include "ml/loss/loss_kinds.h"

namespace parasol {
namespace {

const std::string& NameOf(job::Loss::KindCase field) {
  return job::Loss::descriptor()->FindFieldByNumber(field)->name();
}

// "a, b or c".
std::string NamesOfAll() {
  std::string names;
  const absl::Span<const LossKind* const> kinds = LossKinds();
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) names += i + 1 == kinds.size() ? " or " : ", ";
    names += NameOf(kinds[i]->field);
  }
  return names;
}

}  // namespace

const std::string& LossSpec::name() const { return NameOf(loss.kind_case()); }

absl::Status LossSpec::CheckCode() const {
  return label_is_known() ? absl::OkStatus()
                          : LacksCustomLoss(loss.custom().type());
}

absl::Status CheckLossCode(absl::Span<const OutputSpec> outputs) {
  for (const OutputSpec& output : outputs) {
    RETURN_IF_ERROR(output.loss.CheckCode())
        << (output.is_named()
                ? absl::StrCat("output \"", output.name, "\": loss")
                : "model.loss");
  }
  return absl::OkStatus();
}

std::vector<ExampleColumn> LossColumns(absl::Span<const OutputSpec> outputs) {
  std::vector<ExampleColumn> columns;
  for (const OutputSpec& output : outputs) {
    for (const ExampleColumn& column : ColumnsOf(output.loss.loss)) {
      if (std::find(columns.begin(), columns.end(), column) != columns.end()) {
        continue;
      }
      columns.push_back(column);
    }
  }
  return columns;
}

absl::Status CheckOutputShape(const job::Loss& loss,
                              absl::Span<const int64_t> shape) {
  const LossKind* const kind = KindOf(loss);
  const size_t axes = kind == nullptr ? 1 : kind->axes;
  if (shape.size() == axes && (axes == 1 || shape[0] == 2)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      ShapeText(shape), ", not ",
      axes == 1 ? "one number per class"
                : "[2, width], the vectors of a query and of its candidate"));
}

absl::StatusOr<LossSpec> ResolveLoss(const job::Loss& loss, int64_t outputs) {
  const LossKind* const kind = KindOf(loss);
  if (kind == nullptr) {
    return Fault("loss", absl::StrCat("no kind is chosen: ", NamesOfAll()));
  }
  const std::string path = absl::StrCat("loss.", NameOf(kind->field));
  if (kind->check != nullptr) {
    RETURN_IF_ERROR(kind->check(path, loss));
  }
  if (outputs < 1) {
    return Fault(path, absl::StrCat("the model has ", outputs, " outputs"));
  }
  if (kind->check_outputs != nullptr) {
    RETURN_IF_ERROR(kind->check_outputs(path, outputs));
  }
  LossSpec spec = {
      .loss = loss, .outputs = outputs, .label = kind->label(outputs)};
  if (loss.has_custom()) {
    ASSIGN_OR_RETURN(spec.custom, MakeCustomLoss(path, loss.custom(), outputs));
    if (spec.custom != nullptr) spec.label = spec.custom->label();
    if (spec.label.kind == LabelForm::Kind::kNone) spec.label.width = 0;
  }
  if (spec.label_is_known()) {
    RETURN_IF_ERROR(CheckClassWeights(loss, spec.label));
  }
  return spec;
}

}  // namespace parasol
