#include "cluster/job/validate_model_inputs.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr int64_t kMaxInputs = 1024;
constexpr int64_t kMaxInputColumns = 65536;
constexpr int64_t kMaxElements = kMaxInt;
constexpr int64_t kMaxSteps = 65536;
constexpr size_t kMaxSeparatorBytes = 16;
// Twice as many columns still have 64-bit ids.
constexpr int64_t kMaxIds = int64_t{1} << 46;

absl::Status ValidateShape(const std::string& path,
                           const job::DenseInput& dense) {
  if (dense.shape().empty()) return Missing(absl::StrCat(path, ".shape"));
  int64_t elements = 1;
  for (int i = 0; i < dense.shape_size(); ++i) {
    RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".shape[", i, "]"),
                                   dense.shape(i), 1, kMaxInt));
    elements *= dense.shape(i);
    RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".shape"), elements, 1,
                                   kMaxElements));
  }
  if (dense.column().empty() || elements % dense.column_size() == 0) {
    return absl::OkStatus();
  }
  return Fault(absl::StrCat(path, ".shape"),
               absl::StrCat(elements, " elements are not made of ",
                            dense.column_size(), " columns of the same size"));
}

Faults ValidateDense(const std::string& path, const job::DenseInput& dense) {
  Faults faults;
  faults.Add(RequireInRange(absl::StrCat(path, ".column"), dense.column_size(),
                            0, kMaxInputColumns));
  faults.Add(ValidateShape(path, dense));
  for (int i = 0; i < dense.column_size(); ++i) {
    const std::string column = absl::StrCat(path, ".column[", i, "]");
    const job::NumericColumn& spec = dense.column(i);
    if (spec.name().empty()) faults.Add(Missing(absl::StrCat(column, ".name")));
    faults.Add(RequireFinite(absl::StrCat(column, ".default_value"),
                             spec.default_value()));
    faults.Add(RequireFinite(absl::StrCat(column, ".mean"), spec.mean()));
    faults.Add(RequirePositive(absl::StrCat(column, ".stddev"), spec.stddev()));
  }
  return faults;
}

absl::Status ValidateVocabulary(const std::string& path,
                                const job::Vocabulary& vocabulary) {
  if (vocabulary.value().empty()) return Missing(absl::StrCat(path, ".value"));
  std::set<std::string> values;
  for (const std::string& value : vocabulary.value()) {
    if (!values.insert(value).second) {
      return Fault(absl::StrCat(path, ".value"),
                   absl::StrCat("\"", value, "\" appears twice"));
    }
  }
  return RequireInRange(absl::StrCat(path, ".out_of_vocabulary"),
                        vocabulary.out_of_vocabulary(), 0, kMaxIds);
}

absl::Status ValidateBoundaries(const std::string& path,
                                const job::Boundaries& boundaries) {
  if (boundaries.boundary().empty()) return Missing(path + ".boundary");
  for (int i = 0; i < boundaries.boundary_size(); ++i) {
    const double boundary = boundaries.boundary(i);
    RETURN_IF_ERROR(RequireFinite(path + ".boundary", boundary));
    if (i > 0 && boundary <= boundaries.boundary(i - 1)) {
      return Fault(path + ".boundary", absl::StrCat(boundary, " comes after ",
                                                    boundaries.boundary(i - 1),
                                                    "; they have to ascend"));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateIdColumn(const std::string& path,
                              const job::IdColumn& column) {
  if (column.name().empty()) return Missing(absl::StrCat(path, ".name"));
  for (const std::string& name : column.name()) {
    if (name.empty()) return Fault(path + ".name", "is empty");
  }
  if (column.name_size() > 1 && !column.has_hash()) {
    return Fault(path, "only `hash` makes ids of several columns together");
  }
  switch (column.kind_case()) {
    case job::IdColumn::kHash:
      return RequireInRange(path + ".hash.buckets", column.hash().buckets(), 0,
                            kMaxIds);
    case job::IdColumn::kVocabulary:
      return ValidateVocabulary(path + ".vocabulary", column.vocabulary());
    case job::IdColumn::kBoundaries:
      return ValidateBoundaries(path + ".boundaries", column.boundaries());
    case job::IdColumn::kIdentity:
      if (!column.identity().has_num_ids()) {
        return Missing(path + ".identity.num_ids");
      }
      return RequireInRange(path + ".identity.num_ids",
                            column.identity().num_ids(), 1, kMaxIds);
    case job::IdColumn::KIND_NOT_SET:
      break;
  }
  return Fault(path,
               "no kind is chosen: hash, vocabulary, boundaries or identity");
}

Faults ValidateSequence(const std::string& path, const job::IdInput& ids) {
  Faults faults;
  const job::IdSequence& sequence = ids.sequence();
  if (!sequence.has_length()) {
    faults.Add(Missing(path + ".sequence.length"));
  } else {
    faults.Add(RequireInRange(path + ".sequence.length", sequence.length(), 1,
                              kMaxSteps));
  }
  const std::string& separator = sequence.separator();
  if (separator.empty() || separator.size() > kMaxSeparatorBytes ||
      separator.find_first_of("\"\r\n") != std::string::npos) {
    faults.Add(Fault(path + ".sequence.separator",
                     absl::StrCat("\"", absl::CEscape(separator),
                                  "\" is not 1 to ", kMaxSeparatorBytes,
                                  " characters without quotes and line ends")));
  }
  if (ids.column_size() > 1) {
    faults.Add(Fault(path + ".column",
                     "a sequence is made of one column; give each other one an "
                     "input of its own"));
  }
  for (int i = 0; i < ids.column_size(); ++i) {
    if (ids.column(i).name_size() < 2) continue;
    faults.Add(Fault(absl::StrCat(path, ".column[", i, "].name"),
                     "a sequence is made of one column, and of no cross"));
  }
  return faults;
}

Faults ValidateIds(const std::string& path, const job::IdInput& ids) {
  Faults faults;
  faults.Add(RequireInRange(absl::StrCat(path, ".column"), ids.column_size(), 0,
                            kMaxInputColumns));
  for (int i = 0; i < ids.column_size(); ++i) {
    faults.Add(ValidateIdColumn(absl::StrCat(path, ".column[", i, "]"),
                                ids.column(i)));
  }
  if (ids.has_sequence()) faults.Add(ValidateSequence(path, ids));
  return faults;
}

Faults ValidateInput(const std::string& path, const job::ModelInput& input) {
  switch (input.kind_case()) {
    case job::ModelInput::kDense:
      return ValidateDense(path + ".dense", input.dense());
    case job::ModelInput::kIds:
      return ValidateIds(path + ".ids", input.ids());
    case job::ModelInput::KIND_NOT_SET:
      break;
  }
  Faults faults;
  faults.Add(Fault(path, "neither dense nor ids is chosen"));
  return faults;
}

}  // namespace

Faults ValidateModelInputs(const job::Model& model) {
  Faults faults;
  if (model.input().empty()) return faults;
  if (!model.input_shape().empty()) {
    faults.Add(
        Fault("model.input_shape", "is set, and so is input; choose one"));
  }
  faults.Add(RequireInRange("model.input", model.input_size(), 1, kMaxInputs));
  std::set<std::string> names;
  for (int i = 0; i < model.input_size(); ++i) {
    const std::string path = absl::StrCat("model.input[", i, "]");
    const job::ModelInput& input = model.input(i);
    if (input.name().empty()) {
      faults.Add(Missing(path + ".name"));
    } else if (!names.insert(input.name()).second) {
      faults.Add(
          Fault(path + ".name", absl::StrCat(input.name(), " appears twice")));
    }
    faults.Add(ValidateInput(path, input));
  }
  return faults;
}

}  // namespace parasol
