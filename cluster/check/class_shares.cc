#include "cluster/check/class_shares.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace parasol {
namespace {

constexpr size_t kNamedClasses = 10;

// True if a label is one number that is 0, 1 or a probability.
bool IsBinary(const LabelForm& label) {
  return label.kind == LabelForm::Kind::kNumbers && label.is_probability &&
         label.width == 1;
}

}  // namespace

std::vector<ClassShare> ClassesOf(const LabelForm& label) {
  if (IsBinary(label)) return {{.name = "0"}, {.name = "1"}};
  const int64_t classes = label.kind == LabelForm::Kind::kClass ? label.classes
                          : label.kind == LabelForm::Kind::kOneHot ? label.width
                                                                   : 0;
  std::vector<ClassShare> shares;
  for (int64_t i = 0; i < classes; ++i) {
    shares.push_back({.name = absl::StrCat(i)});
  }
  return shares;
}

std::string UnseenClasses(const LabelForm& form, const LabelsReport& labels) {
  std::vector<std::string> unseen;
  for (const ClassShare& share : labels.classes) {
    if (share.examples == 0) unseen.push_back(share.name);
  }
  if (!unseen.empty() && !IsBinary(form)) {
    const size_t all = unseen.size();
    unseen.resize(std::min(all, kNamedClasses));
    return absl::StrCat("of ", labels.classes.size(), " classes ", all,
                        all == 1 ? " is" : " are",
                        " never seen: ", absl::StrJoin(unseen, ", "),
                        all > unseen.size() ? ", …" : "");
  }
  const NumberStatistics& numbers = labels.numbers;
  if (numbers.count == 0 || numbers.min != numbers.max) return "";
  return absl::StrCat(
      "all ", numbers.count, " labels are ", numbers.min,
      IsBinary(form)
          ? absl::StrCat("; class ", numbers.min == 0 ? 1 : 0, " is never seen")
          : "");
}

}  // namespace parasol
