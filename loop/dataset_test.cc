#include "loop/dataset.h"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/distributed_dataset.h"
#include "ml/tape/operations.h"

namespace parasol::loop {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The numbers 0, …, n - 1, each a row of two.
Dataset Range(int n) {
  std::vector<float> numbers;
  for (int i = 0; i < n; ++i) {
    numbers.push_back(static_cast<float>(i));
    numbers.push_back(static_cast<float>(100 + i));
  }
  return *Dataset::FromTensors({Tensor::Of(numbers, {n, 2})});
}

// The first column of each element, up to `most` elements.
std::vector<std::vector<float>> Read(Stream& stream, int most = 100) {
  std::vector<std::vector<float>> elements;
  for (int i = 0; i < most; ++i) {
    const auto element = stream.Next();
    EXPECT_THAT(element.status(), IsOk());
    if (!element.ok() || !element->has_value()) break;
    std::vector<float>& first = elements.emplace_back();
    const absl::Span<const float> values = (**element)[0].values();
    for (size_t e = 0; e < values.size(); e += 2) first.push_back(values[e]);
  }
  return elements;
}

std::vector<std::vector<float>> Read(const Dataset& data, int most = 100) {
  auto stream = data.Open();
  EXPECT_THAT(stream.status(), IsOk());
  return Read(**stream, most);
}

TEST(DatasetTest, RepeatsBeforeAndAfterBatchesDiffer) {
  EXPECT_THAT(
      Read(Range(3).Repeat(2).Batched(2)),
      ElementsAre(ElementsAre(0, 1), ElementsAre(2, 0), ElementsAre(1, 2)));
  EXPECT_THAT(Read(Range(3).Batched(2).Repeat(2)),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(0, 1),
                          ElementsAre(2)));
  EXPECT_THAT(Read(Range(3).Batched(2, /*drop_remainder=*/true)),
              ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(Read(Range(3).Repeat().Batched(2).Take(40)), SizeIs(40));
}

TEST(DatasetTest, ShufflesEachEpochAnew) {
  const Dataset data = Range(20).Shuffle(20, 7).Repeat(2);
  const std::vector<std::vector<float>> all = Read(data);
  ASSERT_THAT(all, SizeIs(40));
  std::set<float> first;
  std::set<float> second;
  bool differs = false;
  for (int i = 0; i < 20; ++i) {
    first.insert(all[i][0]);
    second.insert(all[20 + i][0]);
    differs |= all[i] != all[20 + i];
  }
  EXPECT_THAT(first, SizeIs(20));
  EXPECT_THAT(second, SizeIs(20));
  EXPECT_TRUE(differs);
  EXPECT_EQ(Read(data), all);
}

TEST(DatasetTest, SkipsToWhatReadingComesTo) {
  const auto square =
      [](int64_t number) -> absl::StatusOr<std::optional<Batch>> {
    if (number == 9) return std::nullopt;
    const float value = static_cast<float>(number * number);
    return Batch{{Tensor::Of({value, 0}, {2})}};
  };
  const std::vector<Dataset> all = {
      Range(7),
      Range(7).Shuffle(3, 1).Repeat(3),
      Range(7).Repeat(2).Batched(3),
      Range(7).Batched(3).Repeat(2),
      Range(7).Batched(2).Take(3),
      Dataset::FromGenerator(square),
      Dataset::FromGenerator(square).Repeat(2).Batched(4),
      Range(7).Map([](Batch batch) -> absl::StatusOr<Batch> {
        return Batch{{batch[0] * 2.f}};
      })};
  for (const Dataset& data : all) {
    const std::vector<std::vector<float>> whole = Read(data);
    for (size_t skipped = 0; skipped <= whole.size() + 1; ++skipped) {
      auto stream = data.Open();
      ASSERT_THAT(stream.status(), IsOk());
      ASSERT_THAT((*stream)->Skip(static_cast<int64_t>(skipped)), IsOk());
      const size_t from = std::min(skipped, whole.size());
      EXPECT_EQ(Read(**stream), std::vector(whole.begin() + from, whole.end()))
          << skipped;
    }
  }
}

TEST(DatasetTest, NothingRepeatedWithoutEndEnds) {
  EXPECT_THAT(Read(Range(0).Repeat()), IsEmpty());
  EXPECT_THAT(Read(Range(0).Batched(2).Repeat()), IsEmpty());
}

TEST(DatasetTest, SaysWhatIsWrong) {
  EXPECT_THAT(Dataset::FromTensors({}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      Dataset::FromTensors({Zeros({3}), Zeros({4})}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[3] and [4]")));
  EXPECT_THAT(
      Dataset::FromTensors({Tensor(1.f)}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a scalar")));
  EXPECT_THAT(
      Range(3).Batched(0).Open().status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("batches of 0")));
  EXPECT_THAT(
      Range(3).Batched(2).Shuffle(3, 1).Open().status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Shuffle()")));
  auto uneven = Dataset::FromGenerator(
                    [](int64_t number) -> absl::StatusOr<std::optional<Batch>> {
                      return Batch{{Zeros({number + 1})}};
                    })
                    .Batched(2)
                    .Open();
  ASSERT_THAT(uneven.status(), IsOk());
  EXPECT_THAT(
      (*uneven)->Next().status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[1] and [2]")));
}

TEST(DistributedDatasetTest, AnErrorIsTheLastBatch) {
  const Dataset data =
      Range(4).Batched(2).Map([](Batch batch) -> absl::StatusOr<Batch> {
        if (batch[0].values()[0] > 0) return absl::DataLossError("row 2");
        return batch;
      });
  std::vector<absl::Status> statuses;
  for (const auto& batch : DistributedDataset(data, 1, 0, 1)) {
    statuses.push_back(batch.status());
  }
  EXPECT_THAT(statuses,
              ElementsAre(IsOk(), StatusIs(absl::StatusCode::kDataLoss,
                                           HasSubstr("row 2"))));
}

TEST(DistributedDatasetTest, IteratorsSeek) {
  const DistributedDataset data(Range(9).Batched(4), 2, 1, 1);
  auto place = data.begin();
  ASSERT_THAT(place.Seek(1), IsOk());
  EXPECT_EQ(place.position(), 1);
  EXPECT_THAT((*place).values()[0][0].values(), ElementsAre(6, 106, 7, 107));
  ASSERT_THAT(place.Seek(2), IsOk());
  // One example in two pieces: the second has none.
  EXPECT_EQ(place.Next().values()[0].size(), 0);
  EXPECT_TRUE(place.is_at_end());
  EXPECT_THAT(place.Next().status(), StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace parasol::loop
