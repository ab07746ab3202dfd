#include "ml/input/feature/model_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "ml/input/feature/fingerprint.h"

namespace parasol {
namespace {

// Up to which every integer is a float32.
constexpr double kMaxClass = 1 << 24;

int64_t ElementsOf(const job::DenseInput& dense) {
  int64_t elements = 1;
  for (const int64_t axis : dense.shape()) elements *= axis;
  return elements;
}

absl::Status CheckOneNumber(const LabelForm& form, absl::string_view loss,
                            absl::string_view format) {
  if (form.kind != LabelForm::Kind::kNumbers || form.width == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(loss, " wants ", form.width,
                   " numbers as an example's label; ", format, " has one"));
}

// Multiplies `weights` by the weights of the classes that `labels` say.
void Multiply(const LabelForm& form, const std::vector<float>& class_weights,
              absl::Span<const float> labels, std::vector<float>& weights) {
  const auto classes = static_cast<int64_t>(class_weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t of =
        ClassOf(form, labels.subspan(i * form.width, form.width));
    // The loss refuses a label that is of no class.
    if (of >= 0 && of < classes) weights[i] *= class_weights[of];
  }
}

absl::Status NotOfClass(double number, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("label ", number, " ", what));
}

}  // namespace

absl::StatusOr<ModelInputs> ModelInputsOf(const job::Model& model,
                                          const LabelForm& label) {
  ModelInputs inputs;
  inputs.inputs.assign(model.input().begin(), model.input().end());
  if (inputs.inputs.empty() && model.input_shape_size() > 0) {
    job::ModelInput& only = inputs.inputs.emplace_back();
    only.set_name("input");
    *only.mutable_dense()->mutable_shape() = model.input_shape();
  }
  if (inputs.inputs.empty()) {
    return absl::InvalidArgumentError("model.input is not set");
  }
  for (job::ModelInput& input : inputs.inputs) {
    if (input.kind_case() == job::ModelInput::KIND_NOT_SET) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", input.name(), " is neither dense nor ids"));
    }
    if (input.has_dense() && input.dense().shape().empty()) {
      if (input.dense().column().empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "input ", input.name(), " has neither a shape nor columns"));
      }
      input.mutable_dense()->add_shape(input.dense().column_size());
    }
  }
  inputs.label = label;
  return inputs;
}

bool ReadsWhole(const job::ModelInput& input, absl::string_view column) {
  if (input.has_ids()) return input.ids().column().empty();
  if (input.dense().column().empty()) return true;
  if (input.dense().column_size() > 1) return false;
  const job::NumericColumn& only = input.dense().column(0);
  return only.name() == column && !only.log1p() && only.mean() == 0 &&
         (!only.has_stddev() || only.stddev() == 1);
}

void ClearBatch(const ModelInputs& inputs, Batch& batch) {
  size_t dense = 0;
  size_t ids = 0;
  batch.dense.resize(inputs.inputs.size());
  batch.ids.resize(inputs.inputs.size());
  for (const job::ModelInput& input : inputs.inputs) {
    if (input.has_ids()) {
      IdFeature& feature = batch.ids[ids++];
      feature.offsets.clear();
      feature.offsets.push_back(0);
      feature.ids.clear();
      feature.weights.clear();
    } else {
      DenseFeature& feature = batch.dense[dense++];
      feature.shape.assign(input.dense().shape().begin(),
                           input.dense().shape().end());
      feature.values.clear();
    }
  }
  batch.dense.resize(dense);
  batch.ids.resize(ids);
  batch.labels.clear();
  batch.targets.resize(inputs.targets.size());
  for (Target& target : batch.targets) {
    target.labels.clear();
    target.weights.clear();
    target.scale = 1;
  }
  batch.weights.clear();
  batch.columns.resize(inputs.columns.size());
  for (ExampleValues& values : batch.columns) {
    values.keys.clear();
    values.numbers.clear();
  }
  batch.kept.resize(inputs.kept.size());
  for (std::vector<std::string>& texts : batch.kept) texts.clear();
  batch.size = 0;
}

void TruncateBatch(const ModelInputs& inputs, int64_t size, Batch& batch) {
  size_t dense = 0;
  for (const job::ModelInput& input : inputs.inputs) {
    if (input.has_ids()) continue;
    batch.dense[dense++].values.resize(size * ElementsOf(input.dense()));
  }
  for (IdFeature& feature : batch.ids) {
    feature.offsets.resize(size + 1);
    feature.ids.resize(feature.offsets.back());
    if (!feature.weights.empty()) feature.weights.resize(feature.ids.size());
  }
  if (inputs.targets.empty()) batch.labels.resize(size * inputs.label.width);
  for (size_t i = 0; i < inputs.targets.size(); ++i) {
    batch.targets[i].labels.resize(size * inputs.targets[i].form.width);
    batch.targets[i].weights.resize(size);
  }
  if (!batch.weights.empty()) batch.weights.resize(size);
  for (size_t i = 0; i < inputs.columns.size(); ++i) {
    if (inputs.columns[i].kind == ExampleColumn::Kind::kKey) {
      batch.columns[i].keys.resize(size);
    } else {
      batch.columns[i].numbers.resize(size);
    }
  }
  for (std::vector<std::string>& texts : batch.kept) texts.resize(size);
  batch.size = size;
}

absl::Status CheckOneLabel(const ModelInputs& inputs,
                           absl::string_view format) {
  if (!inputs.targets.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.output \"", inputs.targets.front().output,
        "\" reads the column \"", inputs.targets.front().label.column(),
        "\" for its labels, and ", format,
        " has no columns of labels: use csv, tfrecord, array, parquet, "
        "criteo, ratings or custom"));
  }
  if (!inputs.columns.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a loss or a metric reads the column \"", inputs.columns.front().name,
        "\", and ", format,
        " has no columns but its features: use csv, tfrecord, array, "
        "parquet, criteo, ratings or custom"));
  }
  return CheckOneNumber(inputs.label, "model.loss", format);
}

absl::Status CheckNothingKept(const ModelInputs& inputs,
                              absl::string_view format) {
  if (inputs.kept.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "column to keep \"", inputs.kept.front(), "\": ", format,
      " has no columns but its features; csv, tfrecord, array, parquet, "
      "criteo, ratings and custom have"));
}

absl::Status CheckLabelColumns(const ModelInputs& inputs,
                               absl::string_view format) {
  if (inputs.targets.empty()) {
    return CheckOneNumber(inputs.label, "model.loss", format);
  }
  for (const TargetInput& target : inputs.targets) {
    const absl::Status checked = CheckOneNumber(
        target.form,
        absl::StrCat("the loss of model.output \"", target.output, "\""),
        absl::StrCat("a column of ", format));
    if (!checked.ok()) return checked;
  }
  return absl::OkStatus();
}

std::vector<std::string> TargetColumns(
    const std::vector<TargetInput>& targets) {
  std::vector<std::string> columns;
  const auto add = [&columns](const std::string& column) {
    if (column.empty() ||
        std::find(columns.begin(), columns.end(), column) != columns.end()) {
      return;
    }
    columns.push_back(column);
  };
  for (const TargetInput& target : targets) {
    add(target.label.column());
    add(target.mask);
  }
  return columns;
}

void AppendKey(absl::string_view text, ExampleValues& values) {
  values.keys.push_back(Fingerprint().AddPart(text).Get());
}

absl::Status AppendProbability(double number, ExampleValues& values) {
  const auto probability = static_cast<float>(number);
  if (!(probability > 0 && number <= 1)) {
    return absl::DataLossError(
        absl::StrCat("probability ", number, " is not above 0 and at most 1"));
  }
  values.numbers.push_back(probability);
  return absl::OkStatus();
}

absl::Status AppendLabel(const LabelForm& form, double number,
                         std::vector<float>& labels) {
  if (form.kind == LabelForm::Kind::kNone) return absl::OkStatus();
  if (form.kind == LabelForm::Kind::kNumbers) {
    if (!std::isfinite(static_cast<float>(number))) {
      return absl::DataLossError(
          absl::StrCat("label ", number, " is beyond float32"));
    }
    if (form.is_probability && !(number >= 0 && number <= 1)) {
      return absl::DataLossError(
          absl::StrCat("label ", number, " is not between 0 and 1"));
    }
    if (form.is_count && number < 0) {
      return absl::DataLossError(
          absl::StrCat("label ", number, " is a count below 0"));
    }
    labels.push_back(static_cast<float>(number));
    return absl::OkStatus();
  }
  if (!(number >= 0 && number <= kMaxClass) || number != std::floor(number)) {
    return NotOfClass(number, "is not the number of a class");
  }
  const int64_t classes =
      form.kind == LabelForm::Kind::kClass ? form.classes : form.width;
  if (classes > 0 && number >= static_cast<double>(classes)) {
    return NotOfClass(number,
                      absl::StrCat("is not one of ", classes, " classes"));
  }
  if (form.kind == LabelForm::Kind::kClass) {
    labels.push_back(static_cast<float>(number));
    return absl::OkStatus();
  }
  const size_t start = labels.size();
  labels.resize(start + form.width);
  labels[start + static_cast<size_t>(number)] = 1;
  return absl::OkStatus();
}

int64_t ClassOf(const LabelForm& form, absl::Span<const float> label) {
  if (form.kind == LabelForm::Kind::kClass) {
    return static_cast<int64_t>(label[0]);
  }
  if (label.size() == 1) return label[0] > .5f ? 1 : 0;
  return std::max_element(label.begin(), label.end()) - label.begin();
}

void SetScales(Batch& batch) {
  for (Target& target : batch.targets) {
    const auto none =
        std::count(target.weights.begin(), target.weights.end(), 0.0f);
    const int64_t counted = batch.size - none;
    target.scale = counted == 0
                       ? 0.0f
                       : static_cast<float>(static_cast<double>(batch.size) /
                                            static_cast<double>(counted));
  }
}

void ApplyClassWeights(const ModelInputs& inputs, Batch& batch) {
  for (size_t i = 0; i < inputs.targets.size(); ++i) {
    const TargetInput& target = inputs.targets[i];
    if (target.class_weights.empty()) continue;
    Multiply(target.form, target.class_weights, batch.targets[i].labels,
             batch.targets[i].weights);
  }
  if (inputs.class_weights.empty()) return;
  if (batch.weights.empty()) batch.weights.assign(batch.size, 1);
  Multiply(inputs.label, inputs.class_weights, batch.labels, batch.weights);
}

absl::Status AppendWeight(double weight, std::vector<float>& weights) {
  if (!(weight >= 0) || !std::isfinite(static_cast<float>(weight))) {
    return absl::DataLossError(
        absl::StrCat("weight ", weight, " is negative or beyond float32"));
  }
  weights.push_back(static_cast<float>(weight));
  return absl::OkStatus();
}

}  // namespace parasol
