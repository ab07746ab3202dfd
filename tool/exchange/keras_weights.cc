#include "tool/exchange/keras_weights.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "tool/exchange/foreign_tensors.h"
#include "tool/exchange/tensor_names.h"

namespace parasol {
namespace {

constexpr absl::string_view kLayers = "layers/";
constexpr absl::string_view kSlots = "optimizer/vars/";
constexpr absl::string_view kIteration = "/iteration";
constexpr absl::string_view kEmbeddings = "embeddings";
constexpr absl::string_view kSaveModel =
    "save a Sequential or functional model with model.save(\"model.keras\")";

class RenamedTensors : public TensorReader {
 public:
  RenamedTensors(std::unique_ptr<TensorReader> reader,
                 std::vector<TensorInfo> tensors)
      : reader_(std::move(reader)), tensors_(std::move(tensors)) {}

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    return reader_->Read(tensor, first, out);
  }

 private:
  const std::unique_ptr<TensorReader> reader_;
  const std::vector<TensorInfo> tensors_;
};

// Splits "look/query/kernel" into the layer and the rest; empty if it is none.
std::pair<absl::string_view, absl::string_view> SplitName(
    absl::string_view name) {
  const size_t leaf = name.rfind('/');
  if (leaf == absl::string_view::npos || leaf == 0) return {};
  const size_t part = name.rfind('/', leaf - 1);
  if (part != absl::string_view::npos) {
    const absl::string_view between = name.substr(part + 1, leaf - part - 1);
    for (const absl::string_view known :
         {"query", "key", "value", "attention_output", "forward", "backward"}) {
      if (between == known)
        return {name.substr(0, part), name.substr(part + 1)};
    }
  }
  return {name.substr(0, leaf), name.substr(leaf + 1)};
}

using Shape = std::vector<int64_t>;

Shape ShapeOf(const durable::CheckpointVariable& variable) {
  return {variable.shape().begin(), variable.shape().end()};
}

// Layers of one kind: the variables' names behind the layer's, with shapes.
using Form = std::map<std::string, Shape, std::less<>>;

// Layers in the order of their first variables.
class Layers {
 public:
  // Adds a variable to its layer. Of embeddings the number of ids counts for
  // nothing: tables have none.
  void Add(absl::string_view name, Shape shape) {
    const auto [layer, leaf] = SplitName(name);
    if (layer.empty()) return;
    if (leaf == kEmbeddings && !shape.empty()) shape[0] = 0;
    const auto [place, is_new] = places_.emplace(layer, named_forms_.size());
    if (is_new) named_forms_.emplace_back(layer, Form());
    named_forms_[place->second].second.emplace(leaf, std::move(shape));
  }

  std::vector<std::pair<std::string, Form>> Take() {
    return std::move(named_forms_);
  }

 private:
  std::vector<std::pair<std::string, Form>> named_forms_;
  std::map<std::string, size_t> places_;
};

// As the job has them, but for the kernel of a depthwise convolution, which
// Keras 3 calls "kernel".
std::vector<std::pair<std::string, Form>> LayersOf(
    const CheckpointContents& contents) {
  Layers layers;
  for (const durable::CheckpointVariable& variable : contents.variables) {
    layers.Add(variable.name(), ShapeOf(variable));
  }
  for (const durable::CheckpointTable& table : contents.tables) {
    layers.Add(absl::StrCat(table.name(), "/", kEmbeddings),
               {0, table.width()});
  }
  auto named_forms = layers.Take();
  for (auto& [name, form] : named_forms) {
    if (form.contains("pointwise_kernel")) continue;
    auto depthwise = form.extract("depthwise_kernel");
    if (depthwise.empty()) continue;
    depthwise.key() = "kernel";
    form.insert(std::move(depthwise));
  }
  return named_forms;
}

// How many slots of a variable an optimizer of Keras has whatever its options
// are; 0: none, or Keras has no such optimizer.
int SlotsAlways(const job::Optimizer& optimizer) {
  switch (optimizer.kind_case()) {
    case job::Optimizer::kAdagrad:
    case job::Optimizer::kRmsprop:
    case job::Optimizer::kLion:
      return 1;
    case job::Optimizer::kAdam:
    case job::Optimizer::kAdamw:
    case job::Optimizer::kNadam:
    case job::Optimizer::kLamb:
    case job::Optimizer::kAdamax:
    case job::Optimizer::kAdadelta:
    case job::Optimizer::kFtrl:
      return 2;
    default:
      return 0;
  }
}

// Each layer's output is the next one's input, and nobody else's; all have the
// job's optimizer.
bool IsChain(const job::Model& model) {
  return model.input_size() <= 1 && model.output_size() <= 1 &&
         std::ranges::all_of(model.layer(), [](const job::Layer& layer) {
           return layer.input_size() == 0 && !layer.has_optimizer();
         });
}

class WeightNamer {
 public:
  WeightNamer(const std::vector<TensorInfo>& tensors,
              const CheckpointContents& contents, const job::Job& job)
      : tensors_(tensors), contents_(contents), job_(job) {}

  absl::Status NameLayers() {
    Layers layers;
    bool is_unnamed = false;
    for (const TensorInfo& tensor : tensors_) {
      if (!absl::StartsWith(tensor.name, kLayers)) continue;
      is_unnamed = true;
      layers.Add(WithoutRecurrentCell(tensor.name), tensor.shape);
    }
    if (!is_unnamed) return absl::OkStatus();
    const bool has_names_of_job = !FrontOfNames(tensors_, contents_).empty();
    std::map<Form, Alike> alike;
    for (const auto& [name, form] : layers.Take()) {
      alike[form].there.push_back(name);
    }
    for (const auto& [name, form] : LayersOf(contents_)) {
      alike[form].here.push_back(name);
    }
    std::map<std::string, std::string, std::less<>> names;
    for (const auto& [form, layers_of_form] : alike) {
      const auto& [there, here] = layers_of_form;
      if (there.size() != here.size()) continue;
      if (there.size() == 1) {
        names[there[0]] = here[0];
      } else if (!has_names_of_job || AreNumbered(there)) {
        return AreAlike(there);
      }
    }
    if (!has_names_of_job) RenameLayers(names);
    return absl::OkStatus();
  }

  absl::Status NameSlots(bool allow_surplus) {
    std::map<uint32_t, size_t> variables;
    bool is_of_job = false;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      absl::string_view name = tensors_[i].name;
      if (absl::ConsumePrefix(&name, kSlots)) {
        uint32_t number = 0;
        if (!absl::SimpleAtoi(name, &number)) {
          return absl::InvalidArgumentError(
              absl::StrCat(ShownText(tensors_[i].name),
                           " is none of an optimizer's variables, which have "
                           "numbers: save the model again"));
        }
        variables[number] = i;
      } else if (absl::ConsumeSuffix(&name, kIteration)) {
        variables[0] = i;
        is_of_job = PlainOptimizer(name) ==
                    PlainOptimizer(KerasNameOf(job_.optimizer()));
      }
    }
    const std::vector<std::pair<std::string, Shape>> slots = SlotsInOrder();
    // The learning rate is in front, unless it has a schedule.
    const size_t others = variables.size() - slots.size();
    if (!is_of_job || !IsChain(job_.model()) || !contents_.tables.empty() ||
        slots.empty() || variables.size() <= slots.size() || others > 2 ||
        variables.rbegin()->first != variables.size() - 1) {
      return absl::OkStatus();
    }
    for (size_t i = 0; i < slots.size(); ++i) {
      const size_t tensor = variables.at(others + i);
      if (tensors_[tensor].shape != slots[i].second) return absl::OkStatus();
    }
    if (const auto swappable = Swappable()) {
      if (allow_surplus) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat(
          "does not say whose an optimizer's variables are, and those of ",
          ShownText(swappable->first), " and ", ShownText(swappable->second),
          " could be swapped: ", kSaveModel,
          ", or leave them out with --allow_surplus"));
    }
    for (size_t i = 0; i < slots.size(); ++i) {
      tensors_[variables.at(others + i)].name = slots[i].first;
    }
    return absl::OkStatus();
  }

  std::vector<TensorInfo> Take() { return std::move(tensors_); }

 private:
  // Names of layers of one form in the file and in the job.
  struct Alike {
    std::vector<std::string> there = {};
    std::vector<std::string> here = {};
  };

  void RenameLayers(
      const std::map<std::string, std::string, std::less<>>& names) {
    for (TensorInfo& tensor : tensors_) {
      const std::string name = WithoutRecurrentCell(tensor.name);
      const auto [layer, leaf] = SplitName(name);
      const auto found = names.find(layer);
      if (found == names.end()) continue;
      tensor.name = absl::StrCat(found->second, "/", leaf);
    }
  }

  // Returns true if two of the layers differ in a number alone, which is their
  // place in a list of Keras and no name.
  static bool AreNumbered(const std::vector<std::string>& layers) {
    std::set<std::string> classes;
    for (const std::string& layer : layers) {
      classes.insert(
          layer.substr(0, layer.find_last_not_of("_0123456789") + 1));
    }
    return classes.size() < layers.size();
  }

  // Keras numbers layers in the order in which a model has got them, which is
  // the order of a Sequential, but of no other model.
  static absl::Status AreAlike(std::vector<std::string> layers) {
    // "dense_2" before "dense_10".
    std::ranges::sort(layers, {}, [](const std::string& layer) {
      return std::pair(layer.size(), layer);
    });
    return absl::InvalidArgumentError(
        absl::StrCat("has no names of layers, and ", ShownText(layers[0]),
                     " and ", ShownText(layers[1]),
                     " are alike, so that nobody can tell which is "
                     "which: ",
                     kSaveModel));
  }

  // Returns two layers whose slots could be in each other's place, by shapes;
  // nullopt: all layers can only be in the job's order.
  std::optional<std::pair<std::string, std::string>> Swappable() const {
    std::vector<Shape> all;
    // Layers with what they begin at in `all`.
    std::vector<std::pair<std::string, size_t>> layers;
    for (const durable::CheckpointVariable& variable : contents_.variables) {
      if (variable.slot_size() == 0) continue;
      const absl::string_view layer = SplitName(variable.name()).first;
      if (layers.empty() || layers.back().first != layer) {
        layers.emplace_back(layer, all.size());
      }
      all.push_back(ShapeOf(variable));
    }
    for (size_t i = 0; i < layers.size(); ++i) {
      const auto at = all.begin() + layers[i].second;
      for (size_t other = i + 1; other < layers.size(); ++other) {
        const auto begin = all.begin() + layers[other].second;
        const auto end = other + 1 < layers.size()
                             ? all.begin() + layers[other + 1].second
                             : all.end();
        if (std::equal(begin, end, at)) {
          return std::pair(layers[i].first, layers[other].first);
        }
      }
    }
    return std::nullopt;
  }

  // The job's slots in the order in which Keras has them; none if an option of
  // the optimizer adds some, so that others could be in their place.
  std::vector<std::pair<std::string, Shape>> SlotsInOrder() const {
    const int always = SlotsAlways(job_.optimizer());
    std::vector<std::pair<std::string, Shape>> slots;
    for (const durable::CheckpointVariable& variable : contents_.variables) {
      if (variable.slot_size() == 0) continue;
      if (variable.slot_size() != always) return {};
      for (const std::string& slot : variable.slot()) {
        slots.emplace_back(SlotName(job_.optimizer(), variable.name(), slot),
                           ShapeOf(variable));
      }
    }
    return slots;
  }

  std::vector<TensorInfo> tensors_;
  const CheckpointContents& contents_;
  const job::Job& job_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorReader>> NameKerasWeights(
    std::unique_ptr<TensorReader> reader, const CheckpointContents& contents,
    const job::Job& job, bool allow_surplus) {
  WeightNamer namer(reader->tensors(), contents, job);
  RETURN_IF_ERROR(namer.NameLayers());
  RETURN_IF_ERROR(namer.NameSlots(allow_surplus));
  std::vector<TensorInfo> tensors = namer.Take();
  return std::make_unique<RenamedTensors>(std::move(reader),
                                          std::move(tensors));
}

}  // namespace parasol
