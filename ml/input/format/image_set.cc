#include "ml/input/format/image_set.h"

#include <memory>
#include <optional>
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
#include "ml/input/file/local_files.h"
#include "ml/input/file/set_memory.h"
#include "ml/input/file/stored_file.h"
#include "ml/input/format/data_files.h"
#include "ml/input/format/idx_reader.h"
#include "ml/input/format/image_transform.h"
#include "ml/input/format/read_records.h"
#include "ml/input/record/fixed_format.h"
#include "ml/input/record/record_reader.h"
#include "ml/input/record/records.h"

namespace parasol {
namespace {

constexpr int64_t kCifarRecordBytes = 1 + 3 * 32 * 32;
constexpr int kCifarClasses = 10;

struct LabelledImage {
  const uint8_t* bytes;  // [channels, height, width]
  uint8_t label;
};

// Finds images and their labels. For one thread.
class ImageFinder {
 public:
  virtual ~ImageFinder() = default;
  // The bytes are valid until the next call.
  virtual absl::StatusOr<LabelledImage> Find(int64_t example) = 0;
  virtual void Prefetch(int64_t /*example*/) {}
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

  // Appends the image that `finder` finds.
  absl::Status Append(ImageFinder& finder, int64_t example, uint64_t random,
                      Batch& batch) const {
    ASSIGN_OR_RETURN(const LabelledImage image, finder.Find(example));
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
  virtual std::unique_ptr<ImageFinder> NewFinder() const = 0;

  const ImageReader reader_;
  const std::vector<int64_t> starts_;
  const bool is_sample_;
  const ModelInputs inputs_;

 protected:
  const bool without_labels_;
};

class ImageDecoder final : public ExampleDecoder {
 public:
  ImageDecoder(const ImageSet& set, std::unique_ptr<ImageFinder> finder)
      : set_(set), finder_(std::move(finder)) {}

  absl::Status Append(int64_t example, uint64_t random, Batch& batch) override {
    return set_.Append(*finder_, example, random, batch);
  }
  void Prefetch(int64_t example) override { finder_->Prefetch(example); }

 private:
  const ImageSet& set_;
  const std::unique_ptr<ImageFinder> finder_;
};

std::unique_ptr<ExampleDecoder> ImageSet::NewDecoder() const {
  return std::make_unique<ImageDecoder>(*this, NewFinder());
}

// Images without pixels have them in a file: `pixels`.
class IdxFinder final : public ImageFinder {
 public:
  IdxFinder(const IdxImages& images, const Records* pixels,
            const std::vector<uint8_t>& labels)
      : images_(images), labels_(labels) {
    if (pixels != nullptr) reader_.emplace(*pixels);
  }

  absl::StatusOr<LabelledImage> Find(int64_t example) override {
    const uint8_t label = labels_.empty() ? uint8_t{0} : labels_[example];
    if (!reader_.has_value()) {
      const int64_t bytes_each = images_.height * images_.width;
      return LabelledImage{images_.pixels.data() + example * bytes_each, label};
    }
    ASSIGN_OR_RETURN(const absl::string_view pixels, reader_->Read(example));
    return LabelledImage{
        reinterpret_cast<const uint8_t*>(pixels.data()),  // NOLINT
        label};
  }
  void Prefetch(int64_t example) override {
    if (reader_.has_value()) reader_->Prefetch(example);
  }

 private:
  const IdxImages& images_;
  const std::vector<uint8_t>& labels_;
  std::optional<RecordReader> reader_;
};

class IdxSet final : public ImageSet {
 public:
  // There is a label for each image, or none at all.
  IdxSet(IdxImages images, std::optional<Records> pixels,
         std::vector<uint8_t> labels, ImageReader reader,
         const SetOptions& options)
      : ImageSet(std::move(reader), {0, images.count},
                 images.count < images.announced, options),
        images_(std::move(images)),
        pixels_(std::move(pixels)),
        labels_(std::move(labels)) {}

 private:
  std::unique_ptr<ImageFinder> NewFinder() const override {
    return std::make_unique<IdxFinder>(
        images_, pixels_.has_value() ? &*pixels_ : nullptr, labels_);
  }

  const IdxImages images_;
  const std::optional<Records> pixels_;  // nullopt: images_ has them
  const std::vector<uint8_t> labels_;
};

class CifarFinder final : public ImageFinder {
 public:
  CifarFinder(const Records& records, bool without_labels)
      : reader_(records), without_labels_(without_labels) {}

  absl::StatusOr<LabelledImage> Find(int64_t example) override {
    ASSIGN_OR_RETURN(const absl::string_view record, reader_.Read(example));
    const auto* bytes =
        reinterpret_cast<const uint8_t*>(record.data());  // NOLINT
    if (bytes[0] < kCifarClasses || without_labels_)
      return LabelledImage{bytes + 1, bytes[0]};
    return reader_.Corrupt(example, 0,
                           absl::StrCat("label ", bytes[0], " is not one of ",
                                        kCifarClasses, " classes"));
  }
  void Prefetch(int64_t example) override { reader_.Prefetch(example); }

 private:
  RecordReader reader_;
  const bool without_labels_;
};

class CifarSet final : public ImageSet {
 public:
  CifarSet(Records records, ImageReader reader, const SetOptions& options)
      : ImageSet(std::move(reader), records.file_starts(), records.is_sample(),
                 options),
        records_(std::move(records)) {}

 private:
  std::unique_ptr<ImageFinder> NewFinder() const override {
    return std::make_unique<CifarFinder>(records_, without_labels_);
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
  ASSIGN_OR_RETURN(const FoundFiles files,
                   FindFiles(data_dir, {pattern}, field));
  if (files.paths.size() == 1) return files.paths.front();
  return absl::InvalidArgumentError(absl::StrCat(field, " ", pattern, " names ",
                                                 files.paths.size(), " files"));
}

// Returns the images; if they are larger than the memory, without their pixels,
// whose records become `pixels`.
absl::StatusOr<IdxImages> ReadImages(const std::string& path,
                                     const SetOptions& options,
                                     std::optional<Records>& pixels) {
  if (options.sample_bytes > 0) {
    return ReadIdxImages(path, options.sample_bytes);
  }
  RETURN_IF_ERROR(BringFiles({path}));
  ASSIGN_OR_RETURN(IdxImages header, ReadIdxImagesHeader(path));
  const int64_t each = header.height * header.width;
  if (static_cast<uint64_t>(header.count * each) <=
      MostInMemory(options.memory)) {
    return ReadIdxImages(path);
  }
  ASSIGN_OR_RETURN(StoredFile file, OpenIdxPixels(path));
  pixels.emplace(Records::Content::kBinary, std::make_shared<FixedFormat>(each),
                 options.memory);
  RETURN_IF_ERROR(pixels->AddStored(std::move(file)));
  return header;
}

// The labels of `images`, of the file at `images_path`.
absl::StatusOr<std::vector<uint8_t>> ReadLabels(
    const std::string& pattern, const std::string& data_dir,
    const IdxImages& images, const std::string& images_path) {
  ASSIGN_OR_RETURN(const std::string path,
                   OneFile(data_dir, pattern, "idx.labels"));
  const bool is_sample = images.count < images.announced;
  if (!is_sample) {
    RETURN_IF_ERROR(BringFiles({path}));
  }
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
  std::optional<Records> pixels;
  ASSIGN_OR_RETURN(IdxImages images, ReadImages(images_path, options, pixels));
  std::vector<uint8_t> labels;
  if (!options.without_labels) {
    ASSIGN_OR_RETURN(labels, ReadLabels(idx.labels(), options.data_dir, images,
                                        images_path));
  }
  const ImageShape shape = {.height = images.height, .width = images.width};
  RETURN_IF_ERROR(CheckInputs(options, shape));
  ASSIGN_OR_RETURN(ImageReader reader, ImageReader::Create(shape, transform));
  return std::make_shared<IdxSet>(std::move(images), std::move(pixels),
                                  std::move(labels), std::move(reader),
                                  options);
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
  ASSIGN_OR_RETURN(Records records,
                   ReadRecords(std::move(files),
                               std::make_shared<FixedFormat>(kCifarRecordBytes),
                               Records::Content::kBinary, options.memory));
  if (!options.skip_corrupt) {
    RETURN_IF_ERROR(records.CheckAllWhole());
  }
  return std::make_shared<CifarSet>(std::move(records), std::move(reader),
                                    options);
}

}  // namespace parasol
