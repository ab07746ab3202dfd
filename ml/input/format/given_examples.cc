#include "ml/input/format/given_examples.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/input/feature/meaningless_label.h"
#include "ml/input/format/csv_set.h"
#include "ml/input/format/image_set.h"

namespace parasol {
namespace {

constexpr absl::string_view kSparseColumn = "features";
constexpr int kMaxPixel = 255;

int64_t Product(absl::Span<const int64_t> shape) {
  int64_t product = 1;
  for (const int64_t axis : shape) product *= axis;
  return product;
}

// Columns that inputs name, and for an input that names none its own name.
Columns NamedColumns(const std::vector<job::ModelInput>& inputs) {
  std::set<std::string> names;
  for (const job::ModelInput& input : inputs) {
    if (input.has_dense()) {
      for (const auto& column : input.dense().column()) {
        names.insert(column.name());
      }
      if (input.dense().column().empty()) names.insert(input.name());
      continue;
    }
    for (const auto& column : input.ids().column()) {
      names.insert(column.name().begin(), column.name().end());
    }
    if (input.ids().column().empty()) names.insert(input.name());
  }
  return {.names = {names.begin(), names.end()}, .labels_and_weights = {}};
}

// Sets the column's kind if `input` reads it as part of a tensor.
void DescribeDense(const job::ModelInput& input, GivenColumn& column) {
  const job::DenseInput& dense = input.dense();
  const std::vector<int64_t> shape(dense.shape().begin(), dense.shape().end());
  if (dense.column_size() <= 1) {
    const bool reads_it = dense.column().empty()
                              ? input.name() == column.name
                              : dense.column(0).name() == column.name;
    if (!reads_it) return;
    column.kind = GivenColumn::Kind::kNumbers;
    column.shape = Product(shape) == 1 ? std::vector<int64_t>() : shape;
    return;
  }
  for (const job::NumericColumn& numeric : dense.column()) {
    if (numeric.name() != column.name) continue;
    const int64_t each = Product(shape) / dense.column_size();
    column.kind = GivenColumn::Kind::kNumbers;
    column.shape.clear();
    if (each > 1) column.shape.push_back(each);
  }
}

bool AreNumbers(const job::IdColumn& column) {
  return column.has_identity() || column.has_boundaries() ||
         column.kind_case() == job::IdColumn::KIND_NOT_SET;
}

// Sets the column's kind if `input` makes ids of it.
void DescribeIds(const job::ModelInput& input, GivenColumn& column) {
  if (input.ids().column().empty() && input.name() == column.name) {
    column.kind = GivenColumn::Kind::kIds;
  }
  for (const job::IdColumn& ids : input.ids().column()) {
    for (const std::string& name : ids.name()) {
      if (name != column.name) continue;
      column.kind = AreNumbers(ids) && !ids.has_boundaries()
                        ? GivenColumn::Kind::kIds
                        : GivenColumn::Kind::kTexts;
    }
  }
}

job::ImageTransform WithoutRandomness(job::ImageTransform transform) {
  transform.clear_random_crop_padding();
  transform.clear_random_flip();
  return transform;
}

}  // namespace

std::optional<int64_t> GivenColumn::count() const {
  switch (kind) {
    case Kind::kNumbers:
    case Kind::kPixels:
      return Product(shape);
    case Kind::kSparse:
      return 1;
    case Kind::kIds:
    case Kind::kTexts:
      break;
  }
  return std::nullopt;
}

absl::StatusOr<GivenExamples> GivenExamples::Create(const job::Dataset& dataset,
                                                    const ModelInputs& inputs) {
  GivenExamples given;
  given.inputs_ = inputs;
  switch (dataset.kind_case()) {
    case job::Dataset::kIdx:
      RETURN_IF_ERROR(given.OpenImages(dataset.image(), std::nullopt));
      return given;
    case job::Dataset::kCifar:
      RETURN_IF_ERROR(given.OpenImages(dataset.image(), kCifarShape));
      return given;
    case job::Dataset::kLibsvm:
      RETURN_IF_ERROR(given.OpenSparse(dataset.libsvm()));
      return given;
    case job::Dataset::kCsv:
      given.csv_ = dataset.csv();
      break;
    case job::Dataset::kCriteo:
      given.csv_ = CsvOf(dataset.criteo());
      break;
    case job::Dataset::kRatings:
      given.csv_ = CsvOf(dataset.ratings());
      break;
    case job::Dataset::kTfrecord:
      given.ignored_ = {dataset.tfrecord().label(),
                        dataset.tfrecord().weight()};
      break;
    case job::Dataset::kArray:
      given.ignored_ = {dataset.array().label(), dataset.array().weight()};
      break;
    case job::Dataset::kParquet:
      given.ignored_ = {dataset.parquet().label().column(),
                        dataset.parquet().weight_column()};
      break;
    case job::Dataset::kCustom:
      break;
    case job::Dataset::KIND_NOT_SET:
      return absl::InvalidArgumentError("the data set has no format");
  }
  if (given.csv_.has_value()) {
    given.ignored_ = {given.csv_->label().column(),
                      given.csv_->weight_column()};
  }
  for (const std::string& column : TargetColumns(inputs.targets)) {
    given.ignored_.push_back(column);
  }
  for (const ExampleColumn& column : inputs.columns) {
    given.ignored_.push_back(column.name);
  }
  RETURN_IF_ERROR(given.OpenColumns());
  // One that an input reads, too, is not passed over.
  for (const GivenColumn& column : given.columns_) {
    std::erase(given.ignored_, column.name);
  }
  return given;
}

absl::Status GivenExamples::OpenColumns() {
  ASSIGN_OR_RETURN(
      ColumnFeatures features,
      ColumnFeatures::Create(inputs_.inputs, NamedColumns(inputs_.inputs)));
  for (const std::string& name : features.columns()) {
    GivenColumn& column = columns_.emplace_back();
    column.name = name;
    for (const job::ModelInput& input : inputs_.inputs) {
      if (input.has_ids()) DescribeIds(input, column);
    }
    // A tensor's shape binds the other inputs of the column, too.
    for (const job::ModelInput& input : inputs_.inputs) {
      if (input.has_dense()) DescribeDense(input, column);
    }
  }
  has_csv_lists_ =
      csv_.has_value() &&
      std::any_of(features.separators().begin(), features.separators().end(),
                  [](const std::string& one) { return !one.empty(); });
  features_ = std::move(features);
  return absl::OkStatus();
}

absl::Status GivenExamples::OpenImages(const job::ImageTransform& transform,
                                       std::optional<ImageShape> shape) {
  GivenColumn& column = columns_.emplace_back();
  column.name = std::string(kImageColumn);
  column.kind = GivenColumn::Kind::kPixels;
  for (const job::ModelInput& input : inputs_.inputs) {
    if (input.has_ids() || !ReadsWhole(input, kImageColumn)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model input ", input.name(), " must be dense and read the column \"",
          kImageColumn, "\", the only one of images"));
    }
    const auto& axes = input.dense().shape();
    if (column.shape.empty()) column.shape.assign(axes.begin(), axes.end());
    if (Product(column.shape) ==
        Product(std::vector<int64_t>(axes.begin(), axes.end()))) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("model input ", input.name(),
                     " has another size than the inputs before it, which are "
                     "images, too"));
  }
  if (shape.has_value()) {
    column.shape = {shape->height, shape->width, shape->channels};
  }
  image_ = shape.value_or(
      ImageShape{.height = 1, .width = Product(column.shape), .channels = 1});
  ASSIGN_OR_RETURN(ImageReader reader,
                   ImageReader::Create(image_, WithoutRandomness(transform)));
  features_ = std::move(reader);
  return absl::OkStatus();
}

absl::Status GivenExamples::OpenSparse(const job::LibsvmDataset& libsvm) {
  RETURN_IF_ERROR(CheckLibsvmInputs(inputs_));
  columns_.push_back({.name = std::string(kSparseColumn),
                      .kind = GivenColumn::Kind::kSparse,
                      .shape = {}});
  features_ = LibsvmRules(libsvm, inputs_);
  return absl::OkStatus();
}

absl::string_view GivenExamples::Trimmed(absl::string_view text) const {
  if (!csv_.has_value()) return text;
  const auto is_blank = [this](char c) {
    return (c == ' ' || c == '\t') &&
           !absl::StartsWith(csv_->delimiter(), absl::string_view(&c, 1));
  };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool GivenExamples::IsMissingText(absl::string_view text) const {
  return IsMissingInCsv(*csv_, text);
}

absl::Status GivenExamples::Append(const ColumnValues& row,
                                   Batch& batch) const {
  if (const auto* columns = std::get_if<ColumnFeatures>(&features_)) {
    RETURN_IF_ERROR(
        columns->Append(has_csv_lists_ ? WithListsSplit(row) : row, batch));
  } else if (const auto* rules = std::get_if<LibsvmRules>(&features_)) {
    char buffer[FieldValue::kMaxNumberBytes];
    const std::vector<FieldValue>& texts = row.front();
    RETURN_IF_ERROR(AppendLibsvmFeatures(
        *rules, texts.empty() ? "" : texts.front().AsText(buffer), batch))
        << "column " << kSparseColumn;
  } else {
    RETURN_IF_ERROR(AppendImage(row.front(), batch));
  }
  AppendMeaninglessLabels(inputs_, batch);
  ++batch.size;
  return absl::OkStatus();
}

// Each text is a list as in a CSV file: one of a list has a value with a
// separator in it no more than there. Numbers are texts, so that no value
// borrows `buffer`.
ColumnValues GivenExamples::WithListsSplit(const ColumnValues& row) const {
  const std::vector<std::string>& separators =
      std::get<ColumnFeatures>(features_).separators();
  ColumnValues all = row;
  std::vector<FieldValue> split;
  char buffer[FieldValue::kMaxNumberBytes];
  for (size_t i = 0; i < row.size(); ++i) {
    if (separators[i].empty()) continue;
    all[i].clear();
    for (const FieldValue& value : row[i]) {
      SplitCsvList(*csv_, separators[i], value.AsText(buffer), split);
      all[i].insert(all[i].end(), split.begin(), split.end());
    }
  }
  return all;
}

absl::Status GivenExamples::AppendImage(const std::vector<FieldValue>& pixels,
                                        Batch& batch) const {
  if (static_cast<int64_t>(pixels.size()) != image_.pixels()) {
    return absl::DataLossError(absl::StrCat("column ", kImageColumn, ": ",
                                            pixels.size(), " values, not ",
                                            image_.pixels()));
  }
  // Given as [height, width, channels], stored as [channels, height, width].
  std::vector<uint8_t> bytes(pixels.size());
  const int64_t plane = image_.height * image_.width;
  for (size_t i = 0; i < pixels.size(); ++i) {
    const std::optional<double> value = pixels[i].AsNumber();
    if (!value.has_value() || *value < 0 || *value > kMaxPixel ||
        *value != static_cast<int>(*value)) {
      return absl::DataLossError(
          absl::StrCat("column ", kImageColumn, ": value ", i,
                       " is not an integer from 0 to ", kMaxPixel));
    }
    const size_t at = i % image_.channels * plane + i / image_.channels;
    bytes[at] = static_cast<uint8_t>(*value);
  }
  for (DenseFeature& feature : batch.dense) {
    std::get<ImageReader>(features_).Append(bytes.data(), /*random=*/0,
                                            feature.values);
  }
  return absl::OkStatus();
}

}  // namespace parasol
