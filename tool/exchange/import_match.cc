#include "tool/exchange/import_match.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/shown_text.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "storage/checkpoint_manifest.h"
#include "tool/exchange/tensor_names.h"

namespace parasol {
namespace {

// As many names stand in an error.
constexpr size_t kMaxNamed = 8;

constexpr absl::string_view kPrefixes[] = {"", "model/", "optimizer/"};

std::string Named(absl::string_view what,
                  const std::vector<std::string>& names) {
  if (names.empty()) return "";
  const size_t shown = std::min(names.size(), kMaxNamed);
  std::string text =
      absl::StrCat("; ", what, ": ",
                   absl::StrJoin(names.begin(), names.begin() + shown, ", "));
  if (shown < names.size()) {
    absl::StrAppend(&text, " and ", names.size() - shown, " more");
  }
  return text;
}

bool IsIdType(ElementType type) {
  return type == ElementType::kInt32 || type == ElementType::kInt64 ||
         type == ElementType::kUint64;
}

// Returns true of what is no part of a model: scalars, and the states of
// Keras's random numbers.
bool IsIncidental(const TensorInfo& tensor) {
  return tensor.shape.empty() ||
         absl::EndsWith(tensor.name, "seed_generator_state");
}

// Looks tensors up, and notes what does not fit.
class Matcher {
 public:
  explicit Matcher(const std::vector<TensorInfo>& tensors) : tensors_(tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      by_name_.emplace(tensors[i].name, i);
    }
  }

  // The tensor with one of these names; nullopt if there is none.
  std::optional<size_t> Find(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      for (const absl::string_view prefix : kPrefixes) {
        const auto found = by_name_.find(absl::StrCat(prefix, name));
        if (found == by_name_.end()) continue;
        used_.insert(found->second);
        return found->second;
      }
    }
    return std::nullopt;
  }

  // Returns the tensor of this name, which must be there and have `shape` and
  // float elements. The index has no meaning after a complaint.
  size_t Require(const std::string& name, const std::vector<int64_t>& shape) {
    const std::optional<size_t> found = Find({name});
    if (!found) missing_.push_back(name);
    if (found) CheckFloats(name, *found, shape);
    return found.value_or(0);
  }

  void RequireOfAnyShape(const std::string& name) {
    if (!Find({name})) missing_.push_back(name);
  }

  std::optional<size_t> RequireIds(const std::string& name) {
    const std::optional<size_t> found = Find({name});
    if (!found) {
      missing_.push_back(name);
    } else if (!IsIdType(tensors_[*found].type) ||
               tensors_[*found].shape.size() != 1) {
      unfit_.push_back(absl::StrCat(name, " is ", FormOf(*found),
                                    ", not one axis of whole numbers"));
    }
    return found;
  }

  // A number that need not be there.
  std::optional<size_t> FindCount(const std::vector<std::string>& names) {
    const std::optional<size_t> found = Find(names);
    if (found &&
        (!tensors_[*found].shape.empty() || !IsIdType(tensors_[*found].type))) {
      unfit_.push_back(absl::StrCat(tensors_[*found].name, " is ",
                                    FormOf(*found), ", not a whole number"));
    }
    return found;
  }

  // A slot, by the name that older or newer Keras gives it.
  std::optional<size_t> FindSlot(const job::Optimizer& optimizer,
                                 const std::string& variable,
                                 const std::string& slot,
                                 const std::vector<int64_t>& shape) {
    const std::string name = SlotName(optimizer, variable, slot);
    const auto found = Find(
        {name, absl::StrCat(KerasNameOf(optimizer), "/", slot, "/", variable)});
    ++(found ? slots_found_ : slots_missing_);
    if (found) CheckFloats(name, *found, shape);
    if (!found) missing_slots_.push_back(name);
    return found;
  }

  bool has_slots() const { return slots_found_ > 0; }
  bool lacks_all_slots() const {
    return slots_found_ == 0 && slots_missing_ > 0;
  }

  absl::Status Verdict(bool allow_surplus) const {
    std::vector<std::string> missing = missing_;
    if (!lacks_all_slots()) {
      missing.insert(missing.end(), missing_slots_.begin(),
                     missing_slots_.end());
    }
    std::vector<std::string> surplus;
    for (size_t i = 0; i < tensors_.size() && !allow_surplus; ++i) {
      if (used_.contains(i) || IsIncidental(tensors_[i])) continue;
      surplus.push_back(tensors_[i].name);
    }
    const std::string faults = absl::StrCat(
        Named("missing", missing), Named("unfit", unfit_),
        Named("too many (--allow_surplus leaves them out)", surplus));
    if (faults.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the tensors are not those of the job", faults));
  }

 private:
  std::string FormOf(size_t tensor) const {
    return absl::StrCat(NameOf(tensors_[tensor].type), " ",
                        ShapeText(tensors_[tensor].shape));
  }

  void CheckFloats(const std::string& name, size_t tensor,
                   const std::vector<int64_t>& shape) {
    if (tensors_[tensor].shape == shape && IsFloat(tensors_[tensor].type)) {
      return;
    }
    unfit_.push_back(absl::StrCat(name, " is ", FormOf(tensor),
                                  ", the job's is float32 ", ShapeText(shape)));
  }

  const std::vector<TensorInfo>& tensors_;
  std::map<std::string, size_t> by_name_;
  std::set<size_t> used_;
  std::vector<std::string> missing_;
  std::vector<std::string> missing_slots_;
  std::vector<std::string> unfit_;
  int slots_found_ = 0;
  int slots_missing_ = 0;
};

ImportMatch::Variable MatchVariable(const durable::CheckpointVariable& variable,
                                    const job::Optimizer& optimizer,
                                    Matcher& matcher) {
  const std::vector<int64_t> shape(variable.shape().begin(),
                                   variable.shape().end());
  ImportMatch::Variable match = {.value =
                                     matcher.Require(variable.name(), shape)};
  for (const std::string& slot : variable.slot()) {
    match.slots.push_back(
        matcher.FindSlot(optimizer, variable.name(), slot, shape));
  }
  return match;
}

ImportMatch::Table MatchTable(const durable::CheckpointTable& table,
                              const job::Optimizer& optimizer,
                              const std::vector<TensorInfo>& tensors,
                              Matcher& matcher) {
  const std::optional<size_t> ids = matcher.RequireIds(IdsName(table.name()));
  if (!ids || tensors[*ids].shape.size() != 1) {
    // Nothing says how many rows there are to be: what there is fits.
    const std::string rows = RowsName(table.name());
    matcher.RequireOfAnyShape(rows);
    for (const std::string& slot : table.slot()) {
      matcher.Find({SlotName(optimizer, rows, slot)});
    }
    return {};
  }
  ImportMatch::Table match = {.ids = *ids};
  const int64_t count = tensors[*ids].shape[0];
  const std::string rows = RowsName(table.name());
  match.rows = matcher.Require(rows, {count, table.width()});
  for (int slot = 0; slot < table.slot_size(); ++slot) {
    match.slots.push_back(matcher.FindSlot(optimizer, rows, table.slot(slot),
                                           {count, SlotWidthOf(table, slot)}));
  }
  return match;
}

}  // namespace

absl::StatusOr<ImportMatch> MatchTensors(const std::vector<TensorInfo>& tensors,
                                         const CheckpointContents& contents,
                                         const job::Job& job,
                                         bool allow_surplus) {
  Matcher matcher(tensors);
  ImportMatch match;
  for (const durable::CheckpointVariable& variable : contents.variables) {
    match.variables.push_back(MatchVariable(
        variable, OptimizerOfVariable(variable.name(), job), matcher));
  }
  for (const durable::CheckpointTable& table : contents.tables) {
    match.tables.push_back(MatchTable(
        table, OptimizerOfTable(table.name(), job), tensors, matcher));
  }
  match.global_step = matcher.FindCount({std::string(kGlobalStepName)});
  match.iterations =
      matcher.FindCount({IterationsName(job.optimizer()), "iteration"});
  match.has_slots = matcher.has_slots();
  match.lacks_all_slots = matcher.lacks_all_slots();
  const absl::Status verdict = matcher.Verdict(allow_surplus);
  if (!verdict.ok()) return verdict;
  return match;
}

}  // namespace parasol
