#include "ml/input/batch_decoder.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/input_shard.h"
#include "ml/input/testing/read_all.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Example i has label i; some are corrupt, but only once a part is in the
// batch.
class NumberSet final : public ExampleSet {
 public:
  NumberSet(int64_t size, std::set<int64_t> corrupt)
      : starts_({0, size}), corrupt_(std::move(corrupt)) {}

  const std::vector<int64_t>& file_starts() const override { return starts_; }
  std::unique_ptr<ExampleDecoder> NewDecoder() const override {
    ++decoders_;
    return std::make_unique<Decoder>(*this);
  }
  int decoders() const { return decoders_; }

 private:
  class Decoder final : public ExampleDecoder {
   public:
    explicit Decoder(const NumberSet& set) : set_(set) {}

    absl::Status Append(int64_t example, uint64_t /*random*/,
                        Batch& batch) override {
      batch.dense[0].values.push_back(static_cast<float>(example));
      batch.ids[0].ids.push_back(example);
      if (set_.corrupt_.count(example) > 0) {
        return absl::DataLossError(absl::StrCat("record ", example));
      }
      batch.ids[0].offsets.push_back(
          static_cast<int32_t>(batch.ids[0].ids.size()));
      batch.labels.push_back(static_cast<float>(example));
      return absl::OkStatus();
    }

   private:
    const NumberSet& set_;
  };

  const std::vector<int64_t> starts_;
  const std::set<int64_t> corrupt_;
  mutable std::atomic<int> decoders_ = 0;
};

// Decodes a set of 10 examples in batches of 3, in their order.
class BatchDecoderTest : public testing::Test {
 protected:
  BatchDecoder& Open(std::set<int64_t> corrupt, bool skip_corrupt,
                     bool repeat = false, bool empty_batches = false) {
    decoder_.reset();  // it reads the set
    set_ = std::make_unique<NumberSet>(10, std::move(corrupt));
    selection_ = std::make_unique<Selection>(set_->file_starts(), nullptr);
    const auto shard = InputShard::Create(*selection_, job::Dataset::DATA, {});
    const auto inputs = ModelInputsOf(
        FromText<job::Model>("input { name: 'x' dense { shape: 1 } } "
                             "input { name: 'i' ids {} }"),
        {.kind = LabelForm::Kind::kClass});
    decoder_ = std::make_unique<BatchDecoder>(
        *set_, *inputs,
        BatchOrder(*selection_, {*shard}, {.batch_size = 3, .repeat = repeat}),
        BatchDecoder::Options{.threads = 3,
                              .ahead = 3,
                              .skip_corrupt = skip_corrupt,
                              .empty_batches = empty_batches},
        skipped_);
    return *decoder_;
  }

  // How many decoders there have been once the threads are joined.
  int Close() {
    decoder_.reset();
    return set_->decoders();
  }

  std::atomic<int64_t> skipped_ = 0;

 private:
  std::unique_ptr<NumberSet> set_;
  std::unique_ptr<Selection> selection_;
  std::unique_ptr<BatchDecoder> decoder_;
};

TEST_F(BatchDecoderTest, AnErrorComesAtItsPlaceAndStays) {
  BatchDecoder& decoder = Open({7}, /*skip_corrupt=*/false);
  for (const float first : {0, 3}) {
    ASSERT_OK_AND_ASSIGN(const Batch* batch, decoder.Next());
    EXPECT_THAT(batch->labels, ElementsAre(first, first + 1, first + 2));
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(decoder.Next(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("record 7")));
  }
}

TEST_F(BatchDecoderTest, CorruptRecordsAreLeftOutOfTheirBatch) {
  BatchDecoder& decoder = Open({1, 6}, /*skip_corrupt=*/true);
  ASSERT_OK_AND_ASSIGN(const Batch* batch, decoder.Next());
  EXPECT_EQ(batch->size, 2);
  EXPECT_THAT(batch->labels, ElementsAre(0, 2));
  EXPECT_THAT(batch->dense[0].values, ElementsAre(0, 2));
  EXPECT_THAT(batch->ids[0].offsets, ElementsAre(0, 1, 2));
  EXPECT_THAT(batch->ids[0].ids, ElementsAre(0, 2));
  EXPECT_OK(decoder.Next());
  ASSERT_OK_AND_ASSIGN(batch, decoder.Next());
  EXPECT_THAT(batch->labels, ElementsAre(7, 8));
  EXPECT_EQ(skipped_, 2);
}

TEST_F(BatchDecoderTest, ABatchOfCorruptRecordsIsPassedOver) {
  BatchDecoder& decoder = Open({3, 4, 5, 9}, /*skip_corrupt=*/true);
  for (const float first : {0, 6}) {
    ASSERT_OK_AND_ASSIGN(const Batch* batch, decoder.Next());
    EXPECT_THAT(batch->labels, ElementsAre(first, first + 1, first + 2));
  }
  EXPECT_THAT(decoder.Next(), IsOkAndHolds(nullptr));
  EXPECT_EQ(skipped_, 4);
}

TEST_F(BatchDecoderTest, APassWithoutARecordIsAnErrorAndNoEndlessLoop) {
  const std::set<int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (const bool repeat : {false, true}) {
    EXPECT_THAT(Open(all, /*skip_corrupt=*/true, repeat).Next(),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("not one record can be decoded")));
  }
}

TEST_F(BatchDecoderTest, ABatchOfCorruptRecordsIsEmptyWhereBatchesAreCounted) {
  BatchDecoder& decoder = Open({3, 4, 5}, /*skip_corrupt=*/true,
                               /*repeat=*/false, /*empty_batches=*/true);
  for (const int64_t size : {3, 0, 3, 1}) {
    ASSERT_OK_AND_ASSIGN(const Batch* batch, decoder.Next());
    EXPECT_EQ(batch->size, size);
  }
  EXPECT_THAT(decoder.Next(), IsOkAndHolds(nullptr));
}

TEST_F(BatchDecoderTest, AnEpochOfEmptyBatchesIsAnError) {
  BatchDecoder& decoder =
      Open({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, /*skip_corrupt=*/true,
           /*repeat=*/true, /*empty_batches=*/true);
  for (int i = 0; i < 3; ++i) EXPECT_OK(decoder.Next());
  EXPECT_THAT(decoder.Next(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("not one record can be decoded")));
}

TEST_F(BatchDecoderTest, NothingIsDecodedBeforeTheFirstBatchIsWanted) {
  Open({}, /*skip_corrupt=*/false);
  EXPECT_EQ(Close(), 0);
  EXPECT_OK(Open({}, /*skip_corrupt=*/false).Next());
  EXPECT_EQ(Close(), 3);
}

TEST_F(BatchDecoderTest, EndsWhateverHasBeenTaken) {
  for (int taken = 0; taken < 8; ++taken) {
    BatchDecoder& decoder = Open({}, /*skip_corrupt=*/false, /*repeat=*/true);
    for (int i = 0; i < taken; ++i) EXPECT_OK(decoder.Next());
  }
}

}  // namespace
}  // namespace parasol
