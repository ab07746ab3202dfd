#include "storage/tensor_files/keras/keras_names.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "storage/tensor_files/keras/saved_objects.h"

namespace parasol {
namespace {

using nlohmann::json;

constexpr char kLayers[] = "layers";
constexpr absl::string_view kLegacySlots = "optimizer_weights/";
// Names of a vocabulary are values, too.
constexpr size_t kMaxConfigValues = 4'000'000;
constexpr char kOptimizer[] = "optimizer";
// Of a LossScaleOptimizer, what trains the variables.
constexpr char kInnerOptimizer[] = "inner_optimizer";
// A layer's name may be as long as a file: its variables' names repeat it.
constexpr size_t kMaxFullNameBytes = 4096;
constexpr size_t kMaxFullNamesBytes = 64 << 20;

// The value of a key of an object; null if there is none.
const json& Member(const json& object, const std::string& key) {
  static const auto* const null = new json();
  if (!object.is_object()) return *null;
  const auto found = object.find(key);
  return found == object.end() ? *null : *found;
}

std::string TextOf(const json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

// As Keras makes a name of a class: "multi_head_attention".
std::string SnakeCase(absl::string_view name) {
  std::string snake;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool is_word =
        i > 0 && absl::ascii_isupper(name[i]) &&
        (absl::ascii_islower(name[i - 1]) ||
         (i + 1 < name.size() && absl::ascii_islower(name[i + 1])));
    if (is_word) snake += '_';
    snake += absl::ascii_tolower(name[i]);
  }
  return snake;
}

bool IsTrained(absl::string_view variable) {
  for (const char* other :
       {"moving_mean", "moving_variance", "mean", "variance", "count"}) {
    if (variable == other) return false;
  }
  return true;
}

// The layers of a model's configuration by their keys in a file.
struct ConfiguredLayers {
  std::vector<std::string> order = {};
  std::map<std::string, const json*> by_key = {};
};

ConfiguredLayers LayersOf(const json& model) {
  ConfiguredLayers layers;
  std::map<std::string, int> counts;
  const json& list = Member(Member(model, "config"), kLayers);
  for (size_t i = 0; list.is_array() && i < list.size(); ++i) {
    const std::string name = SnakeCase(TextOf(Member(list[i], "class_name")));
    const int count = counts[name]++;
    const std::string key = count == 0 ? name : absl::StrCat(name, "_", count);
    layers.order.push_back(key);
    layers.by_key[key] = &list[i];
  }
  return layers;
}

// Names the arrays of a tree of objects.
class Namer {
 public:
  Namer(const Hdf5Contents& contents, const KerasConfig& config)
      : contents_(contents), config_(config) {
    for (const Hdf5Array& array : contents.arrays) {
      names_.push_back(array.path);
    }
  }

  absl::Status Run() {
    SavedObject root = SavedObjectsOf(contents_);
    const auto optimizer = root.parts.extract(kOptimizer);
    has_names_ = HasNames(root);
    // Names that nothing says are marked, so that nobody takes them for names.
    // A model that is a class of its own has a configuration without layers.
    is_marked_ = !has_names_ && LayersOf(config_.model).order.empty();
    RETURN_IF_ERROR(NameParts(
        root, {.config = &config_.model,
               .prefix = is_marked_ ? absl::StrCat(kLayers, "/") : ""}));
    if (optimizer.empty()) return absl::OkStatus();
    const SavedObject& whole = optimizer.mapped();
    const auto inner = whole.parts.find(kInnerOptimizer);
    if (inner == whole.parts.end() || !LeaveOutCopies(whole, inner->second)) {
      NameOptimizer(whole, config_.optimizer);
    } else {
      NameOptimizer(inner->second, Member(Member(config_.optimizer, "config"),
                                          kInnerOptimizer));
    }
    return absl::OkStatus();
  }

  std::vector<std::string> Take() { return std::move(names_); }

 private:
  // An object on the way from the root.
  struct Place {
    const json* config = nullptr;  // {"class_name": …, "config": …}, or null
    std::string prefix = {};       // of its variables' names
    std::string class_name = {};
    bool is_trained = true;
  };

  static bool HasNames(const SavedObject& object) {
    return std::ranges::any_of(object.parts, [](const auto& part) {
      return !part.second.name.empty() || HasNames(part.second);
    });
  }

  static bool IsEmpty(const SavedObject& object) {
    return object.variables.empty() &&
           std::ranges::all_of(object.parts, [](const auto& part) {
             return IsEmpty(part.second);
           });
  }

  absl::Status Name(const SavedObject& object, Place place) {
    const json& trainable =
        Member(Member(*place.config, "config"), "trainable");
    if (trainable.is_boolean() && !trainable.get<bool>()) {
      place.is_trained = false;
    }
    RETURN_IF_ERROR(NameVariables(object, place));
    return NameParts(object, place);
  }

  // Returns true of two variables of which the first has two axes or more, and
  // the second has one: a product's, whatever the class is called. So a layer
  // of a class of its own has "mine/kernel" and "mine/bias".
  bool LooksDense(const SavedObject& object) const {
    const auto axes = [&](size_t number) {
      const auto found = object.variables.find(number);
      return found == object.variables.end()
                 ? 0
                 : contents_.arrays[found->second].shape.size();
    };
    return object.variables.size() == 2 && axes(0) >= 2 && axes(1) == 1;
  }

  absl::Status NameVariables(const SavedObject& object, const Place& place) {
    if (object.variables.empty()) return absl::OkStatus();
    const size_t count = object.variables.size();
    bool is_unclear = false;
    std::optional<std::vector<std::string>> names;
    if (object.variables.rbegin()->first == count - 1) {
      names = VariablesOfClass(place.class_name, count,
                               Member(*place.config, "config"), &is_unclear);
    }
    if (is_unclear) {
      return absl::InvalidArgumentError(absl::StrCat(
          ShownText(place.prefix), " has ", count,
          " variables, and the file does not say which: save the model with "
          "model.save(\"model.keras\"), one that is a class of its own as "
          "keras.Model(x, model.call(x)) of an x = keras.Input(...)"));
    }
    if (!names && LooksDense(object)) names = {"kernel", "bias"};
    if (!names) is_order_known_ = false;
    for (const auto& [number, array] : object.variables) {
      names_[array] =
          absl::StrCat(place.prefix, names ? (*names)[number]
                                           : absl::StrCat("vars/", number));
      names_bytes_ += names_[array].size();
      if (place.prefix.size() > kMaxFullNameBytes) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the name of a variable has ", names_[array].size(), " bytes, of ",
            kMaxFullNameBytes, " at most: ", ShownText(names_[array]),
            "…; save fewer models inside of models"));
      }
      if (names_bytes_ > kMaxFullNamesBytes) {
        return absl::InvalidArgumentError(
            absl::StrCat("the names of all variables have more than ",
                         kMaxFullNamesBytes, " bytes; no model has as many"));
      }
      if (names && place.is_trained && IsTrained((*names)[number])) {
        trained_.push_back(array);
      }
    }
    return absl::OkStatus();
  }

  absl::Status NameParts(const SavedObject& object, const Place& place) {
    std::vector<std::pair<int, const std::string*>> parts;
    for (const auto& [key, part] : object.parts) {
      if (IsEmpty(part)) continue;
      if (key == kLayers || key == "_layer_checkpoint_dependencies") {
        RETURN_IF_ERROR(NameLayers(part, place));
        continue;
      }
      const auto known = SavedPartOf(place.class_name, key);
      if (!known || !known->is_of_class) is_order_known_ = false;
      parts.emplace_back(known ? known->rank : 0, &key);
    }
    std::ranges::stable_sort(parts, {},
                             [](const auto& part) { return part.first; });
    for (const auto& [rank, key] : parts) {
      RETURN_IF_ERROR(NamePart(object.parts.at(*key), *key, place));
    }
    return absl::OkStatus();
  }

  // Names the layers of a model.
  absl::Status NameLayers(const SavedObject& layers, const Place& model) {
    const ConfiguredLayers configured = LayersOf(*model.config);
    std::vector<std::string> order = configured.order;
    for (const auto& [key, layer] : layers.parts) {
      if (configured.by_key.contains(key)) continue;
      order.push_back(key);
      if (!IsEmpty(layer)) is_order_known_ = false;
    }
    for (const std::string& key : order) {
      const auto layer = layers.parts.find(key);
      if (layer == layers.parts.end()) continue;
      const auto config = configured.by_key.find(key);
      Place place = model;
      place.class_name = SavedClassOf(key);
      place.config =
          config == configured.by_key.end() ? &null_ : config->second;
      std::string name =
          has_names_ ? layer->second.name
                     : TextOf(Member(Member(*place.config, "config"), "name"));
      if (name.empty() && !has_names_) {
        name = is_marked_ ? key : absl::StrCat(kLayers, "/", key);
      }
      if (!name.empty()) absl::StrAppend(&place.prefix, name, "/");
      RETURN_IF_ERROR(Name(layer->second, std::move(place)));
    }
    return absl::OkStatus();
  }

  // Names a part of a layer, or of a model that is a class of its own.
  absl::Status NamePart(const SavedObject& part, const std::string& key,
                        const Place& whole) {
    const std::optional<SavedPart> known = SavedPartOf(whole.class_name, key);
    Place place = whole;
    place.config = &null_;
    std::string name = part.name;
    if (!has_names_) name = known ? known->name : key;
    if (!name.empty()) absl::StrAppend(&place.prefix, name, "/");
    // Layers that Keras has named have the class's name.
    place.class_name = known ? known->class_name : SavedClassOf(key);
    bool is_unclear = false;
    if (!known && !VariablesOfClass(place.class_name, part.variables.size(),
                                    null_, &is_unclear)) {
      place.class_name = SavedClassOf(name);
    }
    return Name(part, std::move(place));
  }

  // Leaves out the variables of an optimizer around another one: some numbers,
  // and behind them the inner one's again. The inner one's get the paths that
  // they would have without it. Returns false of others.
  bool LeaveOutCopies(const SavedObject& whole, const SavedObject& inner) {
    const size_t count = inner.variables.size();
    if (count == 0 || count > whole.variables.size()) return false;
    const auto copies = std::prev(whole.variables.end(), count);
    const auto shape = [&](const auto& variable) {
      return contents_.arrays[variable.second].shape;
    };
    const bool are_numbers = std::all_of(
        whole.variables.begin(), copies,
        [&](const auto& variable) { return shape(variable).empty(); });
    if (!are_numbers ||
        !std::equal(copies, whole.variables.end(), inner.variables.begin(),
                    [&](const auto& left, const auto& right) {
                      return shape(left) == shape(right);
                    })) {
      return false;
    }
    for (const auto& [number, array] : whole.variables) names_[array] = "";
    for (const auto& [number, array] : inner.variables) {
      names_[array] = absl::StrCat(kOptimizer, "/vars/", number);
    }
    return true;
  }

  void NameOptimizer(const SavedObject& optimizer, const json& config) {
    const auto iteration = optimizer.variables.find(0);
    std::string name = SnakeCase(TextOf(Member(config, "class_name")));
    if (name.empty()) name = optimizer.name;
    if (name.empty()) name = kOptimizer;
    if (iteration == optimizer.variables.end()) return;
    // It counts gradients: what is no number of updates gets no name.
    if (!AccumulatesGradients(config)) {
      names_[iteration->second] = absl::StrCat(name, "/iteration");
    }
    const auto groups = SlotsOfKerasOptimizer(config);
    if (!groups || !is_order_known_) return;
    std::vector<std::pair<std::string, size_t>> slots;
    for (const std::vector<std::string>& group : *groups) {
      for (const size_t variable : trained_) {
        const std::string flat =
            absl::StrReplaceAll(names_[variable], {{"/", "_"}});
        for (const std::string& slot : group) {
          slots.emplace_back(absl::StrCat(name, "/", flat, "_", slot),
                             variable);
        }
      }
    }
    // A learning rate's schedule is no variable.
    const json& rate = Member(Member(config, "config"), "learning_rate");
    AssignSlots(optimizer, name, rate.is_number(), slots);
  }

  // Gives an optimizer's variables the names of slots, with the variables whose
  // they are, if they are as many, of these shapes.
  void AssignSlots(const SavedObject& optimizer, const std::string& name,
                   bool has_rate,
                   const std::vector<std::pair<std::string, size_t>>& slots) {
    const size_t first = has_rate ? 2 : 1;
    const auto& variables = optimizer.variables;
    size_t count = variables.size();
    if (variables.rbegin()->first + 1 != count) return;
    // Nadam has a number behind them, which is known from the iterations.
    if (contents_.arrays[variables.rbegin()->second].shape.empty() &&
        count == first + slots.size() + 1) {
      --count;
    }
    if (count != first + slots.size()) return;
    for (size_t i = 0; i < slots.size(); ++i) {
      const size_t array = variables.at(first + i);
      if (contents_.arrays[array].shape !=
          contents_.arrays[slots[i].second].shape) {
        return;
      }
    }
    if (first == 2) {
      names_[variables.at(1)] = absl::StrCat(name, "/learning_rate");
    }
    for (size_t i = 0; i < slots.size(); ++i) {
      names_[variables.at(first + i)] = slots[i].first;
    }
  }

  const Hdf5Contents& contents_;
  const KerasConfig& config_;
  const json null_;
  std::vector<std::string> names_;
  size_t names_bytes_ = 0;
  std::vector<size_t> trained_;  // arrays, in the order of Keras
  bool has_names_ = false;
  bool is_marked_ = false;
  bool is_order_known_ = true;
};

bool HasLayerNames(const Hdf5Contents& contents, const std::string& group) {
  const auto found = contents.attributes.find(group);
  return found != contents.attributes.end() &&
         (found->second.contains("layer_names") ||
          found->second.contains("layer_names0"));
}

// The name in an .h5 file of the older kind, which has names as they are,
// "model_weights/hidden/sequential/hidden/kernel:0". In files of Keras 3.0 they
// are the last parts alone: "model_weights/hidden/kernel".
std::string LegacyName(absl::string_view path) {
  absl::ConsumeSuffix(&path, ":0");
  if (absl::ConsumePrefix(&path, kLegacySlots)) return std::string(path);
  absl::ConsumePrefix(&path, "model_weights/");
  const bool is_of_model =
      absl::ConsumePrefix(&path, "top_level_model_weights/");
  const size_t layer = path.find('/');
  const bool is_last_part =
      layer == absl::string_view::npos ||
      path.find('/', layer + 1) == absl::string_view::npos;
  return std::string(is_of_model || is_last_part ? path
                                                 : path.substr(layer + 1));
}

std::vector<std::string> LegacyNames(const std::vector<Hdf5Array>& arrays) {
  // The number of iterations counts gradients then.
  const bool is_accumulated =
      std::ranges::any_of(arrays, [](const Hdf5Array& array) {
        return absl::StartsWith(array.path, kLegacySlots) &&
               absl::EndsWith(array.path, "_gradient_accumulator");
      });
  std::vector<std::string> names;
  for (const Hdf5Array& array : arrays) {
    const bool is_wrong = is_accumulated &&
                          absl::StartsWith(array.path, kLegacySlots) &&
                          absl::EndsWith(array.path, "/iteration");
    names.push_back(is_wrong ? array.path : LegacyName(array.path));
  }
  return names;
}

}  // namespace

absl::StatusOr<KerasConfig> ParseKerasConfig(absl::string_view text) {
  KerasConfig config;
  RETURN_IF_ERROR(VisitJsonMembers(
      text,
      [&](const std::string& name, const json& value) {
        if (name == "class_name" || name == "config") {
          config.model[name] = value;
        }
        if (name == "compile_config") {
          config.optimizer = Member(value, kOptimizer);
        }
        return absl::OkStatus();
      },
      kMaxConfigValues));
  return config;
}

absl::StatusOr<std::vector<std::string>> KerasVariableNames(
    const Hdf5Contents& contents, const KerasConfig& config) {
  std::vector<std::string> names;
  if (HasLayerNames(contents, "model_weights") || HasLayerNames(contents, "")) {
    names = LegacyNames(contents.arrays);
  } else {
    Namer namer(contents, config);
    RETURN_IF_ERROR(namer.Run());
    names = namer.Take();
  }
  std::set<absl::string_view> different;
  for (const std::string& name : names) {
    if (!name.empty() && !different.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two variables are called ", ShownText(name),
                       ": give the model's layers names of their own"));
    }
  }
  return names;
}

}  // namespace parasol
