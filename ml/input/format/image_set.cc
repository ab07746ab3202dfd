#include "ml/input/format/image_set.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ml/input/feature/meaningless_label.h"
#include "ml/input/file/file_set.h"
#include "ml/input/format/data_files.h"
#include "ml/input/format/idx_reader.h"
#include "ml/input/format/image_transform.h"
#include "ml/input/format/records.h"

namespace parasol {
namespace {

constexpr int64_t kCifarRecordBytes = 1 + 3 * 32 * 32;
constexpr int kCifarClasses = 10;

struct LabelledImage {
  const uint8_t* bytes;  // [channels, height, width]
  uint8_t label;
};

class ImageSet : public ExampleSet {
 public:
  ImageSet(ImageReader reader, std::vector<int64_t> starts, bool is_sample,
           const SetOptions& options)
      : reader_(std::move(reader)),
        starts_(std::move(starts)),
        is_sample_(is_sample),
        inputs_(options.inputs),
        without_labels_(options.without_labels) {}

  const std::vector<int64_t>& file_starts() const override { return starts_; }
  std::unique_ptr<ExampleDecoder> NewDecoder() const override;
  bool is_sample() const override { return is_sample_; }

  absl::Status Append(int64_t example, uint64_t random, Batch& batch) const {
    ASSIGN_OR_RETURN(const LabelledImage image, Find(example));
    if (without_labels_) {
      AppendMeaninglessLabels(inputs_, batch);
    } else {
      RETURN_IF_ERROR(AppendLabel(inputs_.label, image.label, batch.labels))
          << "image " << example;
    }
    for (DenseFeature& feature : batch.dense) {
      reader_.Append(image.bytes, random, feature.values);
    }
    return absl::OkStatus();
  }

 private:
  virtual absl::StatusOr<LabelledImage> Find(int64_t example) const = 0;

  const ImageReader reader_;
  const std::vector<int64_t> starts_;
  const bool is_sample_;
  const ModelInputs inputs_;

 protected:
  const bool without_labels_;
};

class ImageDecoder final : public ExampleDecoder {
 public:
  explicit ImageDecoder(const ImageSet& set) : set_(set) {}

  absl::Status Append(int64_t example, uint64_t random, Batch& batch) override {
    return set_.Append(example, random, batch);
  }

 private:
  const ImageSet& set_;
};

std::unique_ptr<ExampleDecoder> ImageSet::NewDecoder() const {
  return std::make_unique<ImageDecoder>(*this);
}

class IdxSet final : public ImageSet {
 public:
  // There is a label for each image, or none at all.
  IdxSet(IdxImages images, std::vector<uint8_t> labels, ImageReader reader,
         const SetOptions& options)
      : ImageSet(std::move(reader), {0, images.count},
                 images.count < images.announced, options),
        images_(std::move(images)),
        labels_(std::move(labels)) {}

 private:
  absl::StatusOr<LabelledImage> Find(int64_t example) const override {
    const int64_t bytes_each = images_.height * images_.width;
    return LabelledImage{images_.pixels.data() + example * bytes_each,
                         without_labels_ ? uint8_t{0} : labels_[example]};
  }

  const IdxImages images_;
  const std::vector<uint8_t> labels_;
};

class CifarSet final : public ImageSet {
 public:
  CifarSet(Records records, ImageReader reader, const SetOptions& options)
      : ImageSet(std::move(reader), records.file_starts(), records.is_sample(),
                 options),
        records_(std::move(records)) {}

 private:
  absl::StatusOr<LabelledImage> Find(int64_t example) const override {
    RETURN_IF_ERROR(records_.CheckWhole(example));
    const auto* bytes = reinterpret_cast<const uint8_t*>(  // NOLINT
        records_[example].data());
    if (bytes[0] < kCifarClasses || without_labels_)
      return LabelledImage{bytes + 1, bytes[0]};
    return records_.Corrupt(example, 0,
                            absl::StrCat("label ", bytes[0], " is not one of ",
                                         kCifarClasses, " classes"));
  }

  const Records records_;
};

std::vector<int64_t> WithoutOnes(absl::Span<const int64_t> shape) {
  std::vector<int64_t> axes;
  for (const int64_t axis : shape) {
    if (axis != 1) axes.push_back(axis);
  }
  return axes;
}

absl::Status CheckInputs(const SetOptions& options, const ImageShape& image) {
  const ModelInputs& inputs = options.inputs;
  RETURN_IF_ERROR(CheckNothingKept(inputs, "a set of images"));
  if (!options.without_labels) {
    RETURN_IF_ERROR(CheckOneLabel(inputs, "a set of images"));
  }
  const std::vector<int64_t> has = {image.height, image.width, image.channels};
  for (const job::ModelInput& input : inputs.inputs) {
    if (input.has_ids() || !ReadsWhole(input, kImageColumn)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model input ", input.name(), " must be dense and read the column \"",
          kImageColumn, "\", the only one of images"));
    }
    const std::vector<int64_t> wants(input.dense().shape().begin(),
                                     input.dense().shape().end());
    const std::vector<int64_t> flat = {image.pixels()};
    if (WithoutOnes(wants) != WithoutOnes(has) && wants != flat) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model input ", input.name(), " is [", absl::StrJoin(wants, ", "),
          "] but the images are [", absl::StrJoin(has, ", "), "]"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> OneFile(const std::string& data_dir,
                                    const std::string& pattern,
                                    absl::string_view field) {
  if (pattern.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is not set"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> files,
                   FindFiles(data_dir, {pattern}, field));
  if (files.size() == 1) return files.front();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " ", pattern, " names ", files.size(), " files"));
}

// The labels of `images`, of the file at `images_path`.
absl::StatusOr<std::vector<uint8_t>> ReadLabels(
    const std::string& pattern, const std::string& data_dir,
    const IdxImages& images, const std::string& images_path) {
  ASSIGN_OR_RETURN(const std::string path,
                   OneFile(data_dir, pattern, "idx.labels"));
  const bool is_sample = images.count < images.announced;
  ASSIGN_OR_RETURN(IdxLabels read, is_sample ? ReadIdxLabels(path, images.count)
                                             : ReadIdxLabels(path));
  if (read.announced == images.announced) return std::move(read.labels);
  constexpr int kCountOffset = 4;
  return absl::DataLossError(absl::StrCat(
      path, " at byte ", kCountOffset, ": ", read.announced, " labels for ",
      images.announced, " images in ", images_path));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenIdxSet(
    const job::IdxDataset& idx, const job::ImageTransform& transform,
    const SetOptions& options) {
  ASSIGN_OR_RETURN(const std::string images_path,
                   OneFile(options.data_dir, idx.images(), "idx.images"));
  ASSIGN_OR_RETURN(IdxImages images,
                   options.sample_bytes > 0
                       ? ReadIdxImages(images_path, options.sample_bytes)
                       : ReadIdxImages(images_path));
  std::vector<uint8_t> labels;
  if (!options.without_labels) {
    ASSIGN_OR_RETURN(labels, ReadLabels(idx.labels(), options.data_dir, images,
                                        images_path));
  }
  const ImageShape shape = {.height = images.height, .width = images.width};
  RETURN_IF_ERROR(CheckInputs(options, shape));
  ASSIGN_OR_RETURN(ImageReader reader, ImageReader::Create(shape, transform));
  return std::make_shared<IdxSet>(std::move(images), std::move(labels),
                                  std::move(reader), options);
}

absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenCifarSet(
    const job::CifarDataset& cifar, const job::ImageTransform& transform,
    const SetOptions& options) {
  const std::vector<std::string> patterns(cifar.file().begin(),
                                          cifar.file().end());
  ASSIGN_OR_RETURN(DataFiles files,
                   DataFiles::Find(options.data_dir, patterns, "cifar.file",
                                   options.sample_bytes));
  RETURN_IF_ERROR(CheckInputs(options, kCifarShape));
  ASSIGN_OR_RETURN(ImageReader reader,
                   ImageReader::Create(kCifarShape, transform));
  Records records(Records::Content::kBinary);
  while (files.HasNext()) {
    ASSIGN_OR_RETURN(DataFile file, files.ReadNext(/*is_text=*/false));
    const bool is_whole = file.is_whole;
    const size_t size =
        records.AddFile(std::move(file.path), std::move(file.bytes)).size();
    size_t at = 0;
    for (; at + kCifarRecordBytes <= size; at += kCifarRecordBytes) {
      records.Add(at, kCifarRecordBytes);
    }
    if (at == size || !is_whole) continue;
    records.AddBroken(
        at, size - at,
        absl::StrCat("ends ", size - at, " bytes into a record of ",
                     kCifarRecordBytes));
  }
  if (files.is_sample()) records.MarkSample();
  if (!options.skip_corrupt) {
    RETURN_IF_ERROR(records.CheckAllWhole());
  }
  return std::make_shared<CifarSet>(std::move(records), std::move(reader),
                                    options);
}

}  // namespace parasol
