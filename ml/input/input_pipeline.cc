#include "ml/input/input_pipeline.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/input/bounded_queue.h"
#include "ml/input/example_order.h"
#include "ml/input/idx_reader.h"

namespace parasol {
namespace {

constexpr int kMaxPrefetchBatches = 1024;

// A whole set, as it came from disk.
struct Examples {
  IdxImages images;
  std::vector<uint8_t> labels;

  int64_t pixels_each() const { return images.height * images.width; }
};

int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// Batches go round: `free_` -> decoded on thread_ -> `ready_` -> lent to the
// caller of Next() -> `free_`. As many exist as may be decoded ahead, and two
// that the caller has; their memory is used again.
//
// Shutdown: both queues are closed, which ends the thread wherever it waits,
// and then it is joined.
class IdxPipeline final : public InputPipeline {
 public:
  IdxPipeline(std::shared_ptr<const Examples> examples,
              const job::Dataset& dataset, const InputOptions& options)
      : examples_(std::move(examples)),
        example_shape_({examples_->images.height, examples_->images.width}),
        num_classes_(1 + *std::max_element(examples_->labels.begin(),
                                           examples_->labels.end())),
        dataset_(dataset),
        repeat_(options.repeat),
        shard_order_(OrderOf(*examples_, dataset, options)),
        first_batch_(options.first_batch),
        order_(shard_order_),
        free_(BatchesOf(dataset)),
        ready_(BatchesOf(dataset)) {
    for (int i = 0; i < BatchesOf(dataset); ++i) {
      free_.Push(std::make_unique<Batch>());
    }
    thread_ = std::thread([this] { DecodeAll(); });
  }

  static absl::StatusOr<std::unique_ptr<InputPipeline>> Open(
      std::shared_ptr<const Examples> examples, const job::Dataset& dataset,
      const InputOptions& options);

  ~IdxPipeline() override {
    free_.Close();
    ready_.Close();
    thread_.join();
  }

  absl::StatusOr<std::unique_ptr<InputPipeline>> OpenAgain(
      const InputOptions& options) const override {
    return Open(examples_, dataset_, options);
  }

  int64_t total_examples() const override { return examples_->images.count; }
  const std::vector<int64_t>& example_shape() const override {
    return example_shape_;
  }
  int64_t num_classes() const override { return num_classes_; }

  absl::StatusOr<const Batch*> Next() override {
    if (lent_before_ != nullptr) free_.Push(std::move(lent_before_));
    lent_before_ = std::move(lent_);
    lent_ = ready_.Pop().value_or(nullptr);
    return lent_.get();
  }

 private:
  static ShardOrder OrderOf(const Examples& examples,
                            const job::Dataset& dataset,
                            const InputOptions& options) {
    return {.total = examples.images.count,
            .shard = options.shard,
            .num_shards = options.num_shards,
            .shuffle_buffer = dataset.shuffle_buffer(),
            .seed = options.seed};
  }
  // All that exist: those decoded ahead, and the two that are lent.
  static int BatchesOf(const job::Dataset& dataset) {
    return std::max(1, dataset.prefetch_batches()) + 2;
  }

  void DecodeAll() {
    int64_t pass = StartAtFirstBatch();
    while (DecodePass() && repeat_) order_.StartPass(++pass);
    ready_.Close();
  }

  // Returns the pass that the first batch is in.
  int64_t StartAtFirstBatch() {
    const int64_t batch_size = dataset_.batch_size();
    const int64_t examples = CeilDivide(shard_order_.total - shard_order_.shard,
                                        shard_order_.num_shards);
    const int64_t batches = CeilDivide(examples, batch_size);
    const int64_t pass = first_batch_ / batches;
    order_.StartPass(pass);
    for (int64_t i = first_batch_ % batches * batch_size; i > 0; --i) {
      order_.Next();
    }
    return pass;
  }

  // False once the pipeline is being destroyed.
  bool DecodePass() {
    for (;;) {
      std::optional<std::unique_ptr<Batch>> batch = free_.Pop();
      if (!batch) return false;
      Fill(**batch);
      if ((*batch)->size == 0) return free_.Push(*std::move(batch));
      if (!ready_.Push(*std::move(batch))) return false;
    }
  }

  // The next examples of the pass; none at its end.
  void Fill(Batch& batch) {
    batch.size = 0;
    batch.dense.resize(1);
    batch.dense.front().shape = example_shape_;
    batch.dense.front().values.clear();
    batch.labels.clear();
    while (batch.size < dataset_.batch_size()) {
      const std::optional<int64_t> example = order_.Next();
      if (!example) return;
      Append(*example, batch);
    }
  }

  void Append(int64_t example, Batch& batch) const {
    const int64_t each = examples_->pixels_each();
    const uint8_t* pixels = examples_->images.pixels.data() + example * each;
    std::vector<float>& values = batch.dense.front().values;
    const size_t start = values.size();
    values.resize(start + each);
    float* features = values.data() + start;
    for (int64_t i = 0; i < each; ++i) features[i] = pixels[i] / 255.f;
    batch.labels.push_back(examples_->labels[example]);
    ++batch.size;
  }

  const std::shared_ptr<const Examples> examples_;
  const std::vector<int64_t> example_shape_;
  const int64_t num_classes_;
  const job::Dataset dataset_;
  const bool repeat_;
  const ShardOrder shard_order_;
  const int64_t first_batch_;
  ExampleOrder order_;  // thread_'s
  BoundedQueue<std::unique_ptr<Batch>> free_;
  BoundedQueue<std::unique_ptr<Batch>> ready_;
  // Next()'s: the last one, and the one before.
  std::unique_ptr<Batch> lent_, lent_before_;
  std::thread thread_;
};

absl::StatusOr<std::string> PathIn(const std::string& data_dir,
                                   const std::string& file,
                                   absl::string_view field) {
  if (file.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is not set"));
  }
  return (std::filesystem::path(data_dir) / file).string();
}

absl::StatusOr<Examples> ReadIdx(const job::IdxDataset& idx,
                                 const std::string& data_dir) {
  ASSIGN_OR_RETURN(const std::string images_path,
                   PathIn(data_dir, idx.images(), "idx.images"));
  ASSIGN_OR_RETURN(const std::string labels_path,
                   PathIn(data_dir, idx.labels(), "idx.labels"));
  Examples examples;
  ASSIGN_OR_RETURN(examples.images, ReadIdxImages(images_path),
                   _ << "data_dir " << data_dir);
  ASSIGN_OR_RETURN(examples.labels, ReadIdxLabels(labels_path),
                   _ << "data_dir " << data_dir);
  const int64_t labels = static_cast<int64_t>(examples.labels.size());
  if (labels != examples.images.count) {
    constexpr int kCountOffset = 4;
    return absl::DataLossError(absl::StrCat(
        labels_path, " at byte ", kCountOffset, ": ", labels, " labels for ",
        examples.images.count, " images in ", images_path));
  }
  return examples;
}

absl::Status CheckSettings(const job::Dataset& dataset,
                           const InputOptions& options) {
  if (dataset.batch_size() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batch_size is ", dataset.batch_size(), "; it must be at least 1"));
  }
  if (dataset.shuffle_buffer() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("shuffle_buffer is ",
                                                   dataset.shuffle_buffer(),
                                                   "; it must be at least 0"));
  }
  if (dataset.prefetch_batches() < 0 ||
      dataset.prefetch_batches() > kMaxPrefetchBatches) {
    return absl::InvalidArgumentError(
        absl::StrCat("prefetch_batches is ", dataset.prefetch_batches(),
                     "; it must be in [0, ", kMaxPrefetchBatches, "]"));
  }
  if (options.shard < 0 || options.shard >= options.num_shards) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shard ", options.shard, " is not one of ", options.num_shards));
  }
  if (options.first_batch < 0 || (options.first_batch > 0 && !options.repeat)) {
    return absl::InvalidArgumentError(
        absl::StrCat("first_batch is ", options.first_batch,
                     "; without repeat it must be 0, with it at least that"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<InputPipeline>> IdxPipeline::Open(
    std::shared_ptr<const Examples> examples, const job::Dataset& dataset,
    const InputOptions& options) {
  RETURN_IF_ERROR(CheckSettings(dataset, options));
  if (options.shard >= examples->images.count) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", options.shard, " of ", options.num_shards,
                     " would be empty: ", dataset.idx().images(), " has ",
                     examples->images.count, " examples"));
  }
  return std::make_unique<IdxPipeline>(std::move(examples), dataset, options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputPipeline>> InputPipeline::Open(
    const job::Dataset& dataset, const InputOptions& options) {
  if (!dataset.has_idx()) {
    return absl::InvalidArgumentError("dataset is not set: choose idx");
  }
  auto examples = std::make_shared<Examples>();
  ASSIGN_OR_RETURN(*examples, ReadIdx(dataset.idx(), options.data_dir));
  return IdxPipeline::Open(std::move(examples), dataset, options);
}

}  // namespace parasol
