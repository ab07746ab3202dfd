#include "storage/tensor_files/keras/saved_objects.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace parasol {
namespace {

using nlohmann::json;

constexpr char kVariables[] = "vars";

// A variable of a class; `option` is the key of the configuration that says
// whether it is there, "" if it always is.
struct ClassVariable {
  std::string name = {};
  std::string option = {};
};

const std::vector<ClassVariable>* FindClass(absl::string_view name) {
  static const std::vector<ClassVariable> kernel = {{"kernel"},
                                                    {"bias", "use_bias"}};
  static const std::vector<ClassVariable> separable = {
      {"depthwise_kernel"}, {"pointwise_kernel"}, {"bias", "use_bias"}};
  static const std::vector<ClassVariable> cell = {
      {"kernel"}, {"recurrent_kernel"}, {"bias", "use_bias"}};
  static const std::vector<ClassVariable> norm = {{"gamma", "scale"},
                                                  {"beta", "center"}};
  static const std::vector<ClassVariable> batch_norm = {{"gamma", "scale"},
                                                        {"beta", "center"},
                                                        {"moving_mean"},
                                                        {"moving_variance"}};
  static const auto* const classes =
      new std::map<std::string, std::vector<ClassVariable>, std::less<>>{
          {"dense", kernel},
          {"einsum_dense", kernel},
          {"conv1d", kernel},
          {"conv2d", kernel},
          {"conv3d", kernel},
          {"conv1d_transpose", kernel},
          {"conv2d_transpose", kernel},
          {"conv3d_transpose", kernel},
          {"depthwise_conv1d", kernel},
          {"depthwise_conv2d", kernel},
          {"separable_conv1d", separable},
          {"separable_conv2d", separable},
          {"cell", cell},
          {"batch_normalization", batch_norm},
          {"layer_normalization", norm},
          {"group_normalization", norm},
          {"rms_normalization", {{"scale"}}},
          {"normalization", {{"mean"}, {"variance"}, {"count"}}},
          {"embedding", {{"embeddings"}}}};
  const auto found = classes->find(name);
  return found == classes->end() ? nullptr : &found->second;
}

bool IsFalse(const json& config, const std::string& key) {
  const auto found = config.find(key);
  return found != config.end() && found->is_boolean() && !found->get<bool>();
}

bool IsTrue(const json& config, const std::string& key) {
  const auto found = config.find(key);
  return found != config.end() && found->is_boolean() && found->get<bool>();
}

bool IsAboveZero(const json& config, const std::string& key) {
  const auto found = config.find(key);
  return found != config.end() && found->is_number() &&
         found->get<double>() > 0;
}

}  // namespace

SavedObject SavedObjectsOf(const Hdf5Contents& contents) {
  SavedObject root;
  const auto find = [&](const std::vector<absl::string_view>& path) {
    SavedObject* object = &root;
    for (const absl::string_view key : path) {
      object = &object->parts[std::string(key)];
    }
    return object;
  };
  for (size_t i = 0; i < contents.arrays.size(); ++i) {
    std::vector<absl::string_view> path =
        absl::StrSplit(contents.arrays[i].path, '/');
    uint32_t number = 0;
    if (path.size() < 2 || path[path.size() - 2] != kVariables ||
        !absl::SimpleAtoi(path.back(), &number)) {
      continue;
    }
    path.resize(path.size() - 2);
    find(path)->variables.emplace(number, i);
  }
  for (const auto& [group, attributes] : contents.attributes) {
    const auto name = attributes.find("name");
    if (name == attributes.end()) continue;
    std::vector<absl::string_view> path = absl::StrSplit(group, '/');
    if (path.back() != kVariables) continue;
    path.pop_back();
    find(path)->name = name->second;
  }
  return root;
}

std::string SavedClassOf(absl::string_view key) {
  const size_t number = key.rfind('_');
  if (number == absl::string_view::npos || number + 1 == key.size()) {
    return std::string(key);
  }
  const absl::string_view digits = key.substr(number + 1);
  return std::string(std::ranges::all_of(digits, absl::ascii_isdigit)
                         ? key.substr(0, number)
                         : key);
}

std::optional<std::vector<std::string>> VariablesOfClass(
    absl::string_view class_name, size_t count, const json& config,
    bool* is_unclear) {
  *is_unclear = false;
  const std::vector<ClassVariable>* known = FindClass(class_name);
  if (known == nullptr || count > known->size()) return std::nullopt;
  std::vector<std::string> all, configured, always;
  for (const auto& [name, option] : *known) {
    all.push_back(name);
    if (option.empty()) always.push_back(name);
    if (option.empty() || (config.is_object() && !IsFalse(config, option))) {
      configured.push_back(name);
    }
  }
  for (const auto* names : {&configured, &all, &always}) {
    if (names->size() == count) return *names;
  }
  *is_unclear = count > always.size();
  return std::nullopt;
}

std::optional<SavedPart> SavedPartOf(absl::string_view layer_class,
                                     absl::string_view key) {
  absl::ConsumePrefix(&key, "_");  // of Keras before 3.0
  const auto is = [&](std::initializer_list<absl::string_view> classes) {
    return std::ranges::find(classes, layer_class) != classes.end();
  };
  for (int rank = 0;
       const auto& [of_key, name] : {std::pair("query_dense", "query"),
                                     {"key_dense", "key"},
                                     {"value_dense", "value"},
                                     {"output_dense", "attention_output"}}) {
    if (key == of_key) {
      return SavedPart{"einsum_dense", name, rank,
                       is({"multi_head_attention", "grouped_query_attention"})};
    }
    ++rank;
  }
  if (key == "cell") {
    return SavedPart{"cell", layer_class == "gru" ? "gru_cell" : "lstm_cell", 0,
                     is({"lstm", "gru", "simple_rnn", "rnn"})};
  }
  const bool is_bidirectional = is({"bidirectional"});
  if (key == "forward_layer") {
    return SavedPart{"lstm", "forward_lstm", 0, is_bidirectional};
  }
  if (key == "backward_layer") {
    return SavedPart{"lstm", "backward_lstm", 1, is_bidirectional};
  }
  return std::nullopt;
}

bool AccumulatesGradients(const json& optimizer) {
  return optimizer.is_object() && optimizer.contains("config") &&
         IsAboveZero(optimizer["config"], "gradient_accumulation_steps");
}

std::optional<std::vector<std::vector<std::string>>> SlotsOfKerasOptimizer(
    const json& optimizer) {
  if (!optimizer.is_object() || !optimizer.contains("class_name") ||
      !optimizer["class_name"].is_string() || !optimizer.contains("config") ||
      !optimizer["config"].is_object()) {
    return std::nullopt;
  }
  using Groups = std::vector<std::vector<std::string>>;
  static const auto* const of_class = new std::map<std::string, Groups>{
      {"SGD", {}},
      {"Adam", {{"momentum", "velocity"}}},
      {"AdamW", {{"momentum", "velocity"}}},
      {"Nadam", {{"momentum", "velocity"}}},
      {"Lamb", {{"momentum", "velocity"}}},
      {"RMSprop", {{"velocity"}}},
      {"Adagrad", {{"accumulator"}}},
      {"Adadelta", {{"accumulated_grad", "accumulated_delta_var"}}},
      {"Adamax", {{"momentum", "norm"}}},
      {"Ftrl", {{"accumulator", "linear"}}},
      {"Lion", {{"momentum"}}}};
  const auto& name = optimizer["class_name"].get_ref<const std::string&>();
  const json& config = optimizer["config"];
  const auto found = of_class->find(name);
  if (found == of_class->end()) return std::nullopt;
  Groups groups;
  if (IsTrue(config, "use_ema")) groups.push_back({"average"});
  if (AccumulatesGradients(optimizer)) {
    groups.push_back({"gradient_accumulator"});
  }
  groups.insert(groups.end(), found->second.begin(), found->second.end());
  if (IsTrue(config, "amsgrad")) groups.push_back({"velocity_hat"});
  if ((name == "SGD" || name == "RMSprop") && IsAboveZero(config, "momentum")) {
    groups.push_back({"momentum"});
  }
  if (IsTrue(config, "centered")) groups.push_back({"average_gradient"});
  return groups;
}

}  // namespace parasol
