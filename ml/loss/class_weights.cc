#include "ml/loss/class_weights.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/field_checks.h"

namespace parasol {
namespace {

// Returns the number of classes that labels name; 0 if they are no classes.
int64_t ClassesOf(const LabelForm& label) {
  switch (label.kind) {
    case LabelForm::Kind::kClass:
      return label.classes;
    case LabelForm::Kind::kOneHot:
      return label.width;
    case LabelForm::Kind::kNone:
      return 0;
    case LabelForm::Kind::kNumbers:
      break;
  }
  return label.is_probability && label.width == 1 ? 2 : 0;
}

}  // namespace

absl::Status CheckClassWeights(const job::Loss& loss, const LabelForm& label) {
  if (loss.class_weight().empty()) return absl::OkStatus();
  const int64_t classes = ClassesOf(label);
  if (classes == 0) {
    return Fault("loss.class_weight",
                 "the labels of this loss are numbers, not classes");
  }
  std::set<int64_t> seen;
  for (int i = 0; i < loss.class_weight_size(); ++i) {
    const job::ClassWeight& one = loss.class_weight(i);
    const std::string path = absl::StrCat("loss.class_weight[", i, "]");
    if (!one.has_class_() || one.class_() < 0 || one.class_() >= classes) {
      return Fault(
          absl::StrCat(path, ".class"),
          absl::StrCat(one.has_class_() ? absl::StrCat(one.class_()) : "unset",
                       " is not a class from 0 to ", classes - 1));
    }
    if (!seen.insert(one.class_()).second) {
      return Fault(absl::StrCat(path, ".class"),
                   absl::StrCat(one.class_(), " has a weight already"));
    }
    if (!(one.weight() >= 0 &&
          one.weight() <= std::numeric_limits<float>::max())) {
      return Fault(
          absl::StrCat(path, ".weight"),
          absl::StrCat(one.weight(), " is not a number of at least 0"));
    }
    if (!one.has_weight()) return Missing(absl::StrCat(path, ".weight"));
  }
  return absl::OkStatus();
}

std::vector<float> ClassWeightsOf(const job::Loss& loss) {
  std::vector<float> weights;
  for (const job::ClassWeight& one : loss.class_weight()) {
    if (static_cast<int64_t>(weights.size()) <= one.class_()) {
      weights.resize(one.class_() + 1, 1);
    }
    weights[one.class_()] = static_cast<float>(one.weight());
  }
  return weights;
}

}  // namespace parasol
