#include "tool/exchange/foreign_tensors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "tool/exchange/pytorch_tensors.h"
#include "tool/exchange/tensor_names.h"

namespace parasol {
namespace {

// Keras's name of the variable of an embedding layer.
std::string EmbeddingsName(absl::string_view table) {
  return absl::StrCat(table, "/embeddings");
}

std::string PyTorchEmbeddingName(absl::string_view table) {
  return absl::StrCat(absl::StrReplaceAll(table, {{"/", "."}}), ".weight");
}

// All names by which files of other programs may have values of the model.
std::set<std::string, std::less<>> NamesOfValues(
    const CheckpointContents& contents) {
  std::set<std::string, std::less<>> names;
  for (const durable::CheckpointVariable& variable : contents.variables) {
    names.insert(variable.name());
    names.insert(PyTorchName(variable.name()));
  }
  for (const durable::CheckpointTable& table : contents.tables) {
    names.insert(EmbeddingsName(table.name()));
    names.insert(PyTorchEmbeddingName(table.name()));
    names.insert(RowsName(table.name()));
  }
  names.erase("");
  return names;
}

// Names that Keras 3 gives to optimizers' slots.
std::string NewSlotName(const job::Optimizer& optimizer,
                        const std::string& slot) {
  static const auto* const names = new std::map<std::string, std::string>{
      {"m", "momentum"},
      {"v", "velocity"},
      {"vhat", "velocity_hat"},
      {"rms", "velocity"},
      {"mg", "average_gradient"},
      {"accum_grad", "accumulated_grad"},
      {"accum_var", "accumulated_delta_var"}};
  if (optimizer.has_adamax() && slot == "v") return "norm";
  const auto found = names->find(slot);
  return found == names->end() ? slot : found->second;
}

std::string Flat(absl::string_view name) {
  return absl::StrReplaceAll(name, {{"/", "_"}});
}

bool IsMatrixOfFloats(const TensorInfo& tensor) {
  return tensor.shape.size() == 2 && IsFloat(tensor.type);
}

bool IsCell(absl::string_view part) {
  if (!absl::ConsumePrefix(&part, "lstm_cell") &&
      !absl::ConsumePrefix(&part, "gru_cell")) {
    return false;
  }
  return part.empty() || part[0] == '_';
}

class ForeignTensors : public TensorReader {
 public:
  explicit ForeignTensors(std::unique_ptr<TensorReader> reader)
      : reader_(std::move(reader)), tensors_(reader_->tensors()) {
    for (TensorInfo& tensor : tensors_) {
      std::string name = WithoutRecurrentCell(tensor.name);
      if (name == tensor.name) continue;
      there_.emplace(name, std::move(tensor.name));
      tensor.name = std::move(name);
    }
    Index();
  }

  void Translate(const CheckpointContents& contents, const job::Job& job) {
    const std::string front = FrontOfNames(tensors_, contents);
    RemoveFront(front);
    RenameNew(NewName(job.optimizer(), "iteration"),
              IterationsName(job.optimizer()));
    for (const durable::CheckpointVariable& variable : contents.variables) {
      RenameDepthwise(front, variable.name());
      for (const std::string& slot : variable.slot()) {
        RenameSlot(OptimizerOfVariable(variable.name(), job), slot,
                   WholeName(front, variable.name()), variable.name());
      }
    }
    for (const durable::CheckpointTable& table : contents.tables) {
      TranslateTable(front, table, OptimizerOfTable(table.name(), job));
    }
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    if (tensor < reader_->tensors().size()) {
      return reader_->Read(tensor, first, out);
    }
    // The ids of an embedding's rows.
    int64_t id = static_cast<int64_t>(first / sizeof(int64_t));
    for (size_t i = 0; i < out.size(); i += sizeof(id), ++id) {
      std::memcpy(&out[i], &id, sizeof(id));
    }
    return absl::OkStatus();
  }

 private:
  // Indexes the tensors by their names, and the tensors of Keras 3's optimizers
  // also by NewName().
  void Index() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const std::string& name = tensors_[i].name;
      by_name_.emplace(name, i);
      absl::string_view rest = name;
      absl::ConsumePrefix(&rest, "optimizer/");
      const size_t slash = rest.find('/');
      if (slash == absl::string_view::npos) continue;
      by_new_name_.emplace(absl::StrCat(PlainOptimizer(rest.substr(0, slash)),
                                        rest.substr(slash)),
                           i);
    }
  }

  void RemoveFront(const std::string& front) {
    for (size_t i = 0; !front.empty() && i < tensors_.size(); ++i) {
      absl::string_view name = tensors_[i].name;
      if (absl::ConsumePrefix(&name, front)) SetName(i, std::string(name));
    }
  }

  // Keras 3 calls the kernel of a depthwise convolution "kernel".
  void RenameDepthwise(const std::string& front, absl::string_view variable) {
    absl::string_view layer = variable;
    if (!absl::ConsumeSuffix(&layer, "/depthwise_kernel") ||
        by_name_.contains(absl::StrCat(layer, "/pointwise_kernel")) ||
        by_name_.contains(std::string(variable))) {
      return;
    }
    const std::string kernel = absl::StrCat(layer, "/kernel");
    if (!by_name_.contains(kernel)) return;
    there_.emplace(absl::StrCat(front, variable), absl::StrCat(front, kernel));
    Rename(kernel, std::string(variable));
  }

  // Gives a tensor another name, unless there is none of the old one or
  // another one has the new one.
  void Rename(const std::string& from, const std::string& to) {
    const auto found = by_name_.find(from);
    if (found != by_name_.end()) SetName(found->second, to);
  }

  // Does the same with what NewName() has named.
  void RenameNew(const std::string& from, const std::string& to) {
    const auto found = by_new_name_.find(from);
    if (found != by_new_name_.end()) SetName(found->second, to);
  }

  void SetName(size_t tensor, const std::string& name) {
    if (by_name_.emplace(name, tensor).second) tensors_[tensor].name = name;
  }

  // Keras 3's name of what an optimizer has.
  static std::string NewName(const job::Optimizer& optimizer,
                             absl::string_view what) {
    return absl::StrCat(PlainOptimizer(KerasNameOf(optimizer)), "/", what);
  }

  // The name that a variable has in the file. The front is of most names: a
  // model inside of another one has a front of its own.
  std::string WholeName(const std::string& front,
                        const std::string& name) const {
    for (const std::string& whole : {absl::StrCat(front, name), name}) {
      const auto found = there_.find(whole);
      if (found != there_.end()) return found->second;
      if (by_name_.contains(whole)) return whole;
    }
    return absl::StrCat(front, name);
  }

  // `there` is the whole name of the variable that the slot is of.
  void RenameSlot(const job::Optimizer& optimizer, const std::string& slot,
                  absl::string_view there, absl::string_view here) {
    RenameNew(NewName(optimizer, absl::StrCat(Flat(there), "_",
                                              NewSlotName(optimizer, slot))),
              SlotName(optimizer, here, slot));
  }

  void TranslateTable(const std::string& front,
                      const durable::CheckpointTable& table,
                      const job::Optimizer& optimizer) {
    const std::string embeddings = EmbeddingsName(table.name());
    const std::string rows = RowsName(table.name());
    if (by_name_.contains(IdsName(table.name()))) return;
    std::optional<size_t> found;
    for (const std::string& name :
         {embeddings, PyTorchEmbeddingName(table.name())}) {
      const auto place = by_name_.find(name);
      if (place == by_name_.end() || found) continue;
      if (IsMatrixOfFloats(tensors_[place->second])) found = place->second;
    }
    if (!found) return;
    SetName(*found, rows);
    tensors_.push_back({IdsName(table.name()),
                        ElementType::kInt64,
                        {tensors_[*found].shape[0]}});
    for (const std::string& slot : table.slot()) {
      RenameSlot(optimizer, slot, WholeName(front, embeddings), rows);
      const std::string name = SlotName(optimizer, rows, slot);
      Rename(SlotName(optimizer, embeddings, slot), name);
      Rename(absl::StrCat(KerasNameOf(optimizer), "/", slot, "/", embeddings),
             name);
    }
  }

  const std::unique_ptr<TensorReader> reader_;
  // The reader's tensors, and behind them ids.
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t> by_name_;
  // Indices by NewName(); apart, for a layer may be named like an optimizer.
  std::map<std::string, size_t> by_new_name_;
  // Whole names in the file, by those that they have got.
  std::map<std::string, std::string> there_;
};

}  // namespace

std::string WithoutRecurrentCell(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  std::vector<absl::string_view> kept;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && IsCell(parts[i])) continue;
    const bool has_cell = i + 1 < parts.size() && IsCell(parts[i + 1]);
    if (has_cell && absl::StartsWith(parts[i], "forward_")) {
      kept.push_back("forward");
    } else if (has_cell && absl::StartsWith(parts[i], "backward_")) {
      kept.push_back("backward");
    } else {
      kept.push_back(parts[i]);
    }
  }
  return absl::StrJoin(kept, "/");
}

std::string FrontOfNames(const std::vector<TensorInfo>& tensors,
                         const CheckpointContents& contents) {
  const std::set<std::string, std::less<>> names = NamesOfValues(contents);
  std::map<std::string, size_t> counts;
  for (const TensorInfo& tensor : tensors) {
    const absl::string_view name = tensor.name;
    size_t begin = 0;
    while (true) {
      // Compared where it is: a name may have a separator at every second byte.
      if (names.contains(name.substr(begin))) {
        ++counts[std::string(name.substr(0, begin))];
      }
      const size_t separator = name.find_first_of("/.", begin);
      if (separator == absl::string_view::npos) break;
      begin = separator + 1;
    }
  }
  size_t most = 0;
  for (const auto& [front, count] : counts) most = std::max(most, count);
  const size_t values = contents.variables.size() + contents.tables.size();
  if (2 * most < values || most == 0) return "";
  // An optimizer that has as many slots has them behind a name of its own.
  std::optional<std::string> best;
  for (const auto& [front, count] : counts) {
    if (count == most && (!best || front.size() < best->size())) best = front;
  }
  for (const auto& [front, count] : counts) {
    if (count == most && !absl::EndsWith(front, *best)) return "";
  }
  return *best;
}

std::unique_ptr<TensorReader> TranslateForeign(
    std::unique_ptr<TensorReader> reader, const CheckpointContents& contents,
    const job::Job& job) {
  auto translated = std::make_unique<ForeignTensors>(std::move(reader));
  translated->Translate(contents, job);
  return translated;
}

}  // namespace parasol
