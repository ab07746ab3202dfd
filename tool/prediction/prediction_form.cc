#include "tool/prediction/prediction_form.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/feature/model_inputs.h"

namespace parasol {
namespace {

// Name of what a yes is not, where a job says only what is one.
std::string NotA(const std::string& positive) {
  return absl::StrCat("not ", positive);
}

// Names of `count` classes, by their numbers.
std::vector<std::string> ClassNames(const job::CsvLabel& label, int64_t count) {
  if (count == 2 && !label.positive().empty()) {
    return {NotA(label.positive(0)), label.positive(0)};
  }
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) {
    names.push_back(i < label.class__size() ? label.class_(static_cast<int>(i))
                                            : absl::StrCat(i));
  }
  return names;
}

// The name, or one for each of several numbers: "kind_0", "kind_1".
std::vector<std::string> Numbered(const std::string& name, size_t width) {
  if (width == 1) return {name};
  std::vector<std::string> names;
  for (size_t i = 0; i < width; ++i) {
    names.push_back(absl::StrCat(name, "_", i));
  }
  return names;
}

std::vector<std::string> WithPrefix(const std::string& prefix,
                                    const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    all.push_back(absl::StrCat(prefix, name));
  }
  return all;
}

PredictionField::Kind NumbersOf(size_t width) {
  return width == 1 ? PredictionField::Kind::kNumber
                    : PredictionField::Kind::kNumbers;
}

bool IsClasses(const OutputSpec& output, OutputLink link) {
  return link == OutputLink::kSoftmax &&
         output.loss.label.kind != LabelForm::Kind::kNumbers;
}

bool IsBinaryOutput(const OutputSpec& output) {
  return !output.loss.loss.has_custom() && output.loss.outputs == 1 &&
         output.loss.label.kind == LabelForm::Kind::kNumbers &&
         output.loss.label.is_probability;
}

// How a data set's labels are made of texts; null if it says nothing of them.
const job::CsvLabel* TextLabelOf(const job::Dataset& data) {
  if (data.has_csv()) return &data.csv().label();
  if (data.has_parquet()) return &data.parquet().label();
  return nullptr;
}

}  // namespace

absl::StatusOr<PredictionForm> PredictionForm::Create(
    absl::Span<const OutputSpec> outputs,
    absl::Span<const job::CsvLabel> labels, const Options& options) {
  PredictionForm form;
  for (size_t i = 0; i < outputs.size(); ++i) {
    form.AddPart(outputs[i], labels[i], options);
  }
  size_t width = 0;
  for (const Part& part : form.parts_) width += part.width;
  form.linked_.resize(width);
  if (options.as_array) {
    form.as_array_ = true;
    form.fields_.clear();
    form.AddField(options.name, PredictionField::Kind::kNumbers,
                  Numbered(options.name, width));
  }
  RETURN_IF_ERROR(form.AddKept(options.kept));
  return form;
}

void PredictionForm::AddField(const std::string& name,
                              PredictionField::Kind kind,
                              std::vector<std::string> columns) {
  fields_.push_back(
      {.name = name, .kind = kind, .columns = std::move(columns)});
}

void PredictionForm::AddPart(const OutputSpec& output,
                             const job::CsvLabel& label,
                             const Options& options) {
  using Field = PredictionField::Kind;
  Part part = {.width = static_cast<size_t>(output.loss.outputs)};
  if (!options.raw) part.link = LinkOf(output.loss.loss);
  const std::string prefix =
      output.is_named() ? absl::StrCat(output.name, "_") : "";
  const auto add = [&](const std::string& name, Field kind,
                       const std::vector<std::string>& columns) {
    AddField(prefix + name, kind, WithPrefix(prefix, columns));
  };
  const auto add_all = [&] {
    part.all = options.all_probabilities;
    if (!part.all) return;
    add("probabilities", Field::kNumbers,
        WithPrefix("probability_", part.classes));
  };
  if (options.raw) {
    const std::string& name = output.is_named() ? output.name : options.name;
    AddField(name, Field::kNumbers, Numbered(name, part.width));
  } else if (IsClasses(output, part.link)) {
    part.kind = Kind::kClasses;
    part.classes = ClassNames(label, output.loss.outputs);
    part.scratch.resize(1);
    add("class", Field::kText, {"class"});
    add("probability", Field::kNumber, {"probability"});
    add_all();
  } else if (IsBinaryOutput(output)) {
    part.kind = Kind::kBinary;
    part.classes = ClassNames(label, 2);
    part.scratch.resize(2);
    part.threshold = output.loss.has_probabilities() ? .5f : 0;
    const bool is_margin = output.loss.loss.has_hinge();
    const char* const name = is_margin ? "prediction" : "probability";
    add(name, Field::kNumber, {name});
    add("class", Field::kText, {"class"});
    if (!is_margin) add_all();
  } else if (part.link == OutputLink::kSigmoid ||
             (output.loss.has_probabilities() && part.width > 1)) {
    add("probabilities", Field::kNumbers, Numbered("probability", part.width));
  } else {
    add("prediction", NumbersOf(part.width),
        Numbered("prediction", part.width));
  }
  parts_.push_back(std::move(part));
}

absl::Status PredictionForm::AddKept(const std::vector<std::string>& kept) {
  std::set<std::string> names;
  for (const std::string& name : kept) {
    if (names.insert(name).second) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--keep: names the column \"", ShownText(name), "\" twice"));
  }
  const auto clash = [&]() -> const std::string* {
    for (const PredictionField& field : fields_) {
      if (names.contains(field.name)) return &field.name;
      for (const std::string& column : field.columns) {
        if (names.contains(column)) return &column;
      }
    }
    return nullptr;
  };
  if (clash() != nullptr) {
    for (PredictionField& field : fields_) {
      field.name = absl::StrCat("predicted_", field.name);
      field.columns = WithPrefix("predicted_", field.columns);
    }
  }
  if (const std::string* const name = clash()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--keep: the predictions have a column \"",
                     ShownText(*name), "\", too; leave that one out"));
  }
  std::vector<PredictionField> all;
  for (const std::string& name : kept) {
    all.push_back({.name = name,
                   .kind = PredictionField::Kind::kText,
                   .columns = {name}});
  }
  all.insert(all.end(), fields_.begin(), fields_.end());
  fields_ = std::move(all);
  return absl::OkStatus();
}

absl::Span<const PredictionValue> PredictionForm::Read(
    absl::Span<const float> outputs, absl::Span<const absl::string_view> kept) {
  values_.clear();
  for (const absl::string_view text : kept) values_.push_back({.text = text});
  std::copy(outputs.begin(), outputs.end(), linked_.begin());
  size_t first = 0;
  for (Part& part : parts_) {
    const absl::Span<float> linked =
        absl::MakeSpan(linked_).subspan(first, part.width);
    ApplyLink(part.link, linked);
    if (!as_array_) ReadPart(part, outputs.subspan(first, part.width), linked);
    first += part.width;
  }
  if (as_array_) values_.push_back({.numbers = linked_});
  return values_;
}

void PredictionForm::ReadPart(Part& part, absl::Span<const float> outputs,
                              absl::Span<const float> linked) {
  if (part.kind == Kind::kNumbers) {
    values_.push_back({.numbers = linked});
    return;
  }
  const absl::Span<const float> computed = part.scratch;
  if (part.kind == Kind::kBinary) {
    part.scratch[0] = 1 - linked[0];
    part.scratch[1] = linked[0];
    const bool is_yes = outputs[0] > part.threshold;
    values_.push_back({.numbers = computed.subspan(1)});
    values_.push_back({.text = std::isnan(outputs[0])
                                   ? absl::string_view()
                                   : part.classes[is_yes ? 1 : 0]});
    if (part.all) values_.push_back({.numbers = computed});
    return;
  }
  const size_t largest =
      std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
  part.scratch[0] = linked[largest];
  values_.push_back({.text = std::isnan(linked[largest])
                                 ? absl::string_view()
                                 : part.classes[largest]});
  values_.push_back({.numbers = computed});
  if (part.all) values_.push_back({.numbers = linked});
}

std::vector<job::CsvLabel> LabelsOfOutputs(const job::Job& job) {
  std::vector<job::CsvLabel> labels;
  for (const job::Output& output : job.model().output()) {
    labels.push_back(output.label());
  }
  if (labels.empty()) {
    const job::CsvLabel* const train = TextLabelOf(job.train());
    const job::CsvLabel* const eval = TextLabelOf(job.eval());
    labels.push_back(train != nullptr  ? *train
                     : eval != nullptr ? *eval
                                       : job::CsvLabel());
  }
  return labels;
}

}  // namespace parasol
