#include "ml/input/input_pipeline.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/testing/input_files.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

constexpr int kExamples = 25;

// Labels are the examples' numbers, so that a batch tells what is in it.
void WriteSet() {
  WriteTestFile("images.gz",
                Gzip(IdxImagesFile(CountingImages(kExamples, 2, 3))));
  std::vector<uint8_t> labels(kExamples);
  std::iota(labels.begin(), labels.end(), 0);
  WriteTestFile("labels", IdxLabelsFile(labels));
}

job::Dataset Dataset(int batch_size, int shuffle_buffer) {
  WriteSet();
  job::Dataset dataset;
  dataset.mutable_idx()->set_images("images.gz");
  dataset.mutable_idx()->set_labels("labels");
  dataset.set_batch_size(batch_size);
  dataset.set_shuffle_buffer(shuffle_buffer);
  dataset.set_prefetch_batches(2);
  return dataset;
}

// The images, and one number as a label whatever it is.
job::Model Model() {
  job::Model model;
  model.add_input_shape(2);
  model.add_input_shape(3);
  model.mutable_loss()->mutable_sparse_categorical_crossentropy();
  return model;
}

ModelInputs Inputs(const job::Model& model) {
  return *ModelInputsOf(model, {.kind = LabelForm::Kind::kClass});
}

InputOptions Options() { return {.data_dir = testing::TempDir()}; }

std::unique_ptr<InputPipeline> Open(const job::Dataset& dataset,
                                    const InputOptions& options) {
  auto pipeline = InputPipeline::Open(dataset, Inputs(Model()), options);
  EXPECT_OK(pipeline);
  return *std::move(pipeline);
}

std::vector<float> RestOfPass(InputPipeline& pipeline) {
  std::vector<float> labels;
  for (;;) {
    const auto batch = pipeline.Next();
    EXPECT_OK(batch);
    if (*batch == nullptr) return labels;
    labels.insert(labels.end(), (*batch)->labels.begin(),
                  (*batch)->labels.end());
  }
}

// The labels of the next `count` batches.
std::vector<std::vector<float>> NextBatches(InputPipeline& pipeline,
                                            int count) {
  std::vector<std::vector<float>> batches;
  for (int i = 0; i < count; ++i) {
    const auto batch = pipeline.Next();
    EXPECT_OK(batch);
    batches.emplace_back((*batch)->labels.begin(), (*batch)->labels.end());
  }
  return batches;
}

TEST(InputPipelineTest, AReaderMayBeginWithAnyBatchOfAnyPass) {
  InputOptions options = Options();
  options.repeat = true;
  options.shard = 1;
  options.num_shards = 2;
  options.seed = 5;
  // 12 examples in the shard: 3 batches a epoch, the last one smaller.
  const job::Dataset dataset = Dataset(5, 8);
  const auto from_start = Open(dataset, options);
  const auto all = NextBatches(*from_start, 10);
  for (int first = 0; first < 10; ++first) {
    SCOPED_TRACE(first);
    options.first_batch = first;
    ASSERT_OK_AND_ASSIGN(const auto later, from_start->OpenAgain(options));
    EXPECT_EQ(NextBatches(*later, 10 - first),
              std::vector(all.begin() + first, all.end()));
  }
}

InputOptions ByNumber(int num_shards) {
  InputOptions options = Options();
  options.seed = 5;
  options.num_shards = num_shards;
  options.by_number = true;
  return options;
}

TEST(InputPipelineTest, AReaderByNumberGivesTheBatchesThatARepeatingOneCounts) {
  const job::Dataset dataset = Dataset(4, 8);
  InputOptions options = Options();
  options.repeat = true;
  options.seed = 5;
  const auto all = NextBatches(*Open(dataset, options), 21);
  const auto by_number = Open(dataset, ByNumber(1));
  const std::vector<int64_t> numbers = {0, 1, 3, 6, 7, 20, 2, 13, 13};
  by_number->SetNext(numbers);
  std::vector<std::vector<float>> want;
  for (const int64_t number : numbers) want.push_back(all[number]);
  EXPECT_EQ(NextBatches(*by_number, numbers.size()), want);
}

TEST(InputPipelineTest, OtherBatchesMayBeNamedAtAnyTime) {
  const auto by_number = Open(Dataset(4, 0), ByNumber(1));
  by_number->SetNext({0, 1, 2, 3, 4});
  EXPECT_THAT(NextBatches(*by_number, 2),
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
  by_number->SetNext({2, 5, 6});
  EXPECT_THAT(
      NextBatches(*by_number, 2),
      ElementsAre(ElementsAre(8, 9, 10, 11), ElementsAre(20, 21, 22, 23)));
  by_number->SetNext({0});
  EXPECT_THAT(NextBatches(*by_number, 1), ElementsAre(ElementsAre(0, 1, 2, 3)));
}

TEST(InputPipelineTest, AnEpochByNumberHasEachExampleOfEveryShardOnce) {
  for (const int shards : {1, 2, 3}) {
    const auto by_number = Open(Dataset(4, 100), ByNumber(shards));
    ASSERT_OK_AND_ASSIGN(const auto sizes, by_number->ShardSizes(shards));
    std::vector<int64_t> numbers;
    for (const int64_t size : sizes) {
      for (int64_t i = 0; i < size; i += 4) numbers.push_back(numbers.size());
    }
    std::reverse(numbers.begin(), numbers.end());
    by_number->SetNext(numbers);
    std::vector<float> seen;
    for (const auto& batch : NextBatches(*by_number, numbers.size())) {
      seen.insert(seen.end(), batch.begin(), batch.end());
    }
    std::vector<float> want(kExamples);
    std::iota(want.begin(), want.end(), 0);
    EXPECT_THAT(seen, testing::UnorderedElementsAreArray(want)) << shards;
  }
}

TEST(InputPipelineTest, ShardSizesAreThoseOfTheReaders) {
  const auto pipeline = Open(Dataset(4, 0), Options());
  EXPECT_THAT(pipeline->ShardSizes(1), IsOkAndHolds(ElementsAre(25)));
  EXPECT_THAT(pipeline->ShardSizes(3), IsOkAndHolds(ElementsAre(9, 8, 8)));
  EXPECT_THAT(pipeline->ShardSizes(26),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(InputPipelineTest, TellsWhatTheSetHas) {
  const auto pipeline = Open(Dataset(4, 0), Options());
  EXPECT_EQ(pipeline->total_examples(), kExamples);
  EXPECT_EQ(pipeline->skipped_records(), 0);
}

TEST(InputPipelineTest, BatchHasPixelsFromZeroToOneAndTheirLabels) {
  const auto pipeline = Open(Dataset(2, 0), Options());
  ASSERT_OK_AND_ASSIGN(const Batch* batch, pipeline->Next());
  EXPECT_EQ(batch->size, 2);
  EXPECT_THAT(batch->dense.front().shape, ElementsAre(2, 3));
  EXPECT_THAT(batch->labels, ElementsAre(0, 1));
  std::vector<testing::Matcher<float>> want;
  for (const int pixel : {0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6}) {
    want.push_back(FloatEq(static_cast<float>(pixel / 255.0)));
  }
  EXPECT_THAT(batch->dense.front().values, testing::ElementsAreArray(want));
}

TEST(InputPipelineTest, LastBatchIsSmallerAndThenThePassIsOver) {
  const auto pipeline = Open(Dataset(10, 0), Options());
  std::vector<int64_t> sizes;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const Batch* batch, pipeline->Next());
    sizes.push_back(batch->size);
  }
  EXPECT_THAT(sizes, ElementsAre(10, 10, 5));
  EXPECT_THAT(pipeline->Next(), IsOkAndHolds(nullptr));
  EXPECT_THAT(pipeline->Next(), IsOkAndHolds(nullptr));
}

TEST(InputPipelineTest, BatchMayBeLargerThanTheSet) {
  const auto pipeline = Open(Dataset(2000000000, 2000000000), Options());
  ASSERT_OK_AND_ASSIGN(const Batch* batch, pipeline->Next());
  EXPECT_EQ(batch->size, kExamples);
}

TEST(InputPipelineTest, FilesMayBeGoneOnceOpen) {
  const auto pipeline = Open(Dataset(4, 0), Options());
  std::remove((testing::TempDir() + "/images.gz").c_str());
  EXPECT_EQ(RestOfPass(*pipeline).size(), kExamples);
}

TEST(InputPipelineTest, ShardsCoverEveryExampleOnce) {
  std::map<float, int> seen;
  for (int shard = 0; shard < 4; ++shard) {
    InputOptions options = Options();
    options.shard = shard;
    options.num_shards = 4;
    for (const float label : RestOfPass(*Open(Dataset(3, 5), options))) {
      ++seen[label];
    }
  }
  EXPECT_EQ(seen.size(), kExamples);
  for (const auto& [label, times] : seen) EXPECT_EQ(times, 1) << label;
}

TEST(InputPipelineTest, OrderIsTheSeedsAndNotTheThreads) {
  InputOptions options = Options();
  options.seed = 3;
  job::Dataset ahead = Dataset(4, 10);
  ahead.set_prefetch_batches(8);
  const auto order = RestOfPass(*Open(Dataset(4, 10), options));
  EXPECT_EQ(RestOfPass(*Open(ahead, options)), order);
  options.seed = 4;
  EXPECT_NE(RestOfPass(*Open(ahead, options)), order);
}

TEST(InputPipelineTest, BatchesAreTheSameWhateverTheNumberOfThreads) {
  job::Dataset dataset = Dataset(3, 10);
  dataset.mutable_image()->set_random_crop_padding(1);
  dataset.mutable_image()->set_random_flip(true);
  InputOptions options = Options();
  options.repeat = true;
  std::vector<Batch> want;
  for (int threads = 1; threads <= 4; ++threads) {
    SCOPED_TRACE(threads);
    dataset.set_decode_threads(threads);
    const auto pipeline = Open(dataset, options);
    for (size_t i = 0; i < 30; ++i) {
      ASSERT_OK_AND_ASSIGN(const Batch* batch, pipeline->Next());
      if (threads == 1) want.push_back(*batch);
      EXPECT_EQ(batch->labels, want[i].labels);
      EXPECT_EQ(batch->dense.front().values, want[i].dense.front().values);
    }
  }
}

TEST(InputPipelineTest, ReadersOfASetCountSkippedRecordsTogether) {
  WriteTestFile("skipped.svm", "1 1:1\nx\n0 1:0\n");
  job::Dataset dataset = Dataset(2, 0);
  dataset.mutable_libsvm()->add_file("skipped.svm");
  dataset.set_on_corrupt(job::Dataset::SKIP);
  job::Model model;
  model.add_input_shape(1);
  ASSERT_OK_AND_ASSIGN(const auto set,
                       InputPipeline::Open(dataset, Inputs(model), Options()));
  EXPECT_EQ(RestOfPass(*set).size(), 2);
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto reader, set->OpenAgain(Options()));
    RestOfPass(*reader);
  }
  EXPECT_EQ(set->skipped_records(), 3);
}

TEST(InputPipelineTest, ABatchStaysUntilTheSecondNextCall) {
  InputOptions options = Options();
  options.repeat = true;
  job::Dataset dataset = Dataset(2, 5);
  dataset.set_prefetch_batches(1);
  dataset.set_decode_threads(1);
  const auto pipeline = Open(dataset, options);
  ASSERT_OK_AND_ASSIGN(const Batch* before, pipeline->Next());
  for (int i = 0; i < 100; ++i) {
    const Batch copy = *before;
    ASSERT_OK_AND_ASSIGN(const Batch* batch, pipeline->Next());
    EXPECT_EQ(before->labels, copy.labels);
    EXPECT_EQ(before->dense.front().values, copy.dense.front().values);
    before = batch;
  }
}

TEST(InputPipelineTest, RepeatGoesOnWithAnotherOrder) {
  InputOptions options = Options();
  options.repeat = true;
  const auto pipeline = Open(Dataset(kExamples, kExamples), options);
  std::vector<std::vector<float>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    ASSERT_OK_AND_ASSIGN(const Batch* batch, pipeline->Next());
    ASSERT_NE(batch, nullptr);
    epochs.push_back(batch->labels);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  EXPECT_THAT(epochs[2], testing::UnorderedElementsAreArray(epochs[0]));
}

TEST(InputPipelineTest, EndsWhileTheProducerWaitsForRoom) {
  InputOptions options = Options();
  options.repeat = true;
  for (int taken = 0; taken < 4; ++taken) {
    const auto pipeline = Open(Dataset(1, 0), options);
    for (int i = 0; i < taken; ++i) EXPECT_OK(pipeline->Next());
  }
}

TEST(InputPipelineTest, MissingFileNamesItAndTheDirectory) {
  InputOptions options;
  options.data_dir = "/no/such/dir";
  EXPECT_THAT(InputPipeline::Open(Dataset(4, 0), Inputs(Model()), options),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("--data_dir=/no/such/dir"),
                             HasSubstr("/no/such/dir/images.gz"))));
}

TEST(InputPipelineTest, LabelsForOtherImagesAreDataLoss) {
  job::Dataset dataset = Dataset(4, 0);
  WriteTestFile("few_labels", IdxLabelsFile({1, 2}));
  dataset.mutable_idx()->set_labels("few_labels");
  EXPECT_THAT(InputPipeline::Open(dataset, Inputs(Model()), Options()),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("few_labels at byte 4"),
                             HasSubstr("2 labels for 25 images"))));
}

TEST(InputPipelineTest, CorruptFileIsDataLoss) {
  job::Dataset dataset = Dataset(4, 0);
  WriteTestFile("corrupt", "\x1f\x8b and then nonsense");
  dataset.mutable_idx()->set_images("corrupt");
  EXPECT_THAT(InputPipeline::Open(dataset, Inputs(Model()), Options()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("/corrupt")));
}

TEST(InputPipelineTest, SettingsOutOfRangeAreNamed) {
  struct Case {
    std::string want;
    void (*change)(job::Dataset&, InputOptions&);
  };
  const Case cases[] = {
      {"dataset is not set",
       [](job::Dataset& d, InputOptions&) { d.clear_idx(); }},
      {"idx.images is not set",
       [](job::Dataset& d, InputOptions&) { d.mutable_idx()->clear_images(); }},
      {"idx.labels is not set",
       [](job::Dataset& d, InputOptions&) { d.mutable_idx()->clear_labels(); }},
      {"batch_size is 0",
       [](job::Dataset& d, InputOptions&) { d.set_batch_size(0); }},
      {"shuffle_buffer is -1",
       [](job::Dataset& d, InputOptions&) { d.set_shuffle_buffer(-1); }},
      {"prefetch_batches is 2000000000",
       [](job::Dataset& d, InputOptions&) {
         d.set_prefetch_batches(2000000000);
       }},
      {"decode_threads is 0",
       [](job::Dataset& d, InputOptions&) { d.set_decode_threads(0); }},
      {"image is set, but only idx and cifar have images",
       [](job::Dataset& d, InputOptions&) {
         d.mutable_ratings();
         d.mutable_image();
       }},
      {"input shard 2 is not in 0 to 1",
       [](job::Dataset&, InputOptions& o) { o.shard = o.num_shards = 2; }},
      {"shard 25 of 26 would be empty",
       [](job::Dataset&, InputOptions& o) {
         o.shard = 25;
         o.num_shards = 26;
       }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.want);
    job::Dataset dataset = Dataset(4, 0);
    InputOptions options = Options();
    c.change(dataset, options);
    EXPECT_THAT(
        InputPipeline::Open(dataset, Inputs(Model()), options),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

TEST(InputPipelineTest, EmptySetIsRefused) {
  job::Dataset dataset = Dataset(4, 0);
  WriteTestFile("no_images", IdxImagesFile(CountingImages(0, 28, 28)));
  WriteTestFile("no_labels", IdxLabelsFile({}));
  dataset.mutable_idx()->set_images("no_images");
  dataset.mutable_idx()->set_labels("no_labels");
  job::Model model;
  model.add_input_shape(28);
  model.add_input_shape(28);
  EXPECT_THAT(
      InputPipeline::Open(dataset, Inputs(model), Options()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("no_images: the data set has no examples in 1 file")));
}

TEST(InputPipelineTest, AModelWithoutInputsIsRefused) {
  EXPECT_THAT(ModelInputsOf(job::Model(), {.kind = LabelForm::Kind::kClass}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model.input is not set")));
}

}  // namespace
}  // namespace parasol
