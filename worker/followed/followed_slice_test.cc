#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/topic/testing/mock_kafka.h"
#include "ml/model/graph.h"
#include "ml/model/graph_inputs.h"
#include "worker/followed/followed_input.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kTopicJob[] = R"(
  name: "followed"
  seed: 5
  model {
    input { name: "x" dense { column { name: "x" } } }
    layer { input: "x" dense { units: 1 } }
    loss { mean_squared_error {} }
  }
  train {
    csv { file: "kafka://b:1/t" column: ["x", "y"] label { column: "y" } }
    follow: true
    batch_size: 4
  }
  end { never {} }
)";

// A topic whose record at an offset has this as x.
class FollowedSliceTest : public testing::Test {
 protected:
  FollowedSliceTest() : job_(ParseJob(kTopicJob, "job.textproto").value()) {
    FillDefaults(job_);
    kafka_.Create("t", 1);
    for (int i = 0; i < 20; ++i) {
      kafka_.Add("t", 0, absl::StrCat(i, i < 10 ? ",01" : ",001"));
    }
    kafka_.Flush();
  }

  // Has the chief name a slice whose records have so many bytes.
  void Name(const std::string& path, int64_t bytes, int64_t records) {
    wire::ClaimStepsResponse answer;
    wire::TrainingFile* file = answer.add_file();
    file->set_path(path);
    file->set_bytes(bytes);
    file->set_records(records);
    file->set_first_batch(batches_);
    file->set_batches((records + 3) / 4);
    batches_ += file->batches();
    files_.Take(answer);
  }
  absl::StatusOr<std::vector<int>> Read(int64_t batch) {
    if (input_ == nullptr) {
      const Graph graph = ResolveGraph(job_.model()).value();
      input_ = std::make_unique<FollowedInput>(
          FollowedInput::Options{
              .dataset = job_.train(),
              .inputs = TrainingInputsOf(job_.model(), graph).value(),
              .data_dir = "/none",
              .seed = job_.seed(),
              .topic = TopicSource::Open(kafka_.Uri("t"), job_.train(), "",
                                         absl::Seconds(10))
                           .value()},
          files_);
    }
    input_->SetNext({batch});
    const absl::StatusOr<const Batch*> read = input_->Next();
    if (!read.ok()) return read.status();
    std::vector<int> records;
    if ((*read)->size == 0) return records;
    for (const float x : (*read)->dense[0].values) {
      records.push_back(static_cast<int>(x));
    }
    return records;
  }

  MockKafka kafka_;
  job::Job job_;
  TrainingFiles files_;
  std::unique_ptr<FollowedInput> input_;
  int64_t batches_ = 0;
};

TEST_F(FollowedSliceTest, ReadsTheRecordsOfEachSlice) {
  Name("t/000000000000@0:0-8", 8 * 5, 8);
  Name("t/000000000001@0:8-10", 2 * 5, 2);
  std::vector<int> seen;
  for (const int batch : {0, 1}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<int> records, Read(batch));
    EXPECT_EQ(records.size(), 4);
    seen.insert(seen.end(), records.begin(), records.end());
  }
  EXPECT_THAT(seen, UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  ASSERT_OK_AND_ASSIGN(const std::vector<int> last, Read(2));
  EXPECT_THAT(last, UnorderedElementsAre(8, 9));
  // Whoever reads a batch again has the same one.
  ASSERT_OK_AND_ASSIGN(const std::vector<int> again, Read(1));
  EXPECT_TRUE(std::equal(again.begin(), again.end(), seen.begin() + 4));
}

TEST_F(FollowedSliceTest, ASliceWithOtherRecordsThanTheChiefsIsNamed) {
  Name("t/000000000000@0:0-8", 8 * 5 + 1, 8);
  EXPECT_THAT(Read(0), StatusIs(absl::StatusCode::kDataLoss,
                                AllOf(HasSubstr("t/000000000000@0:0-8"),
                                      HasSubstr("has changed"))));
}

TEST_F(FollowedSliceTest, ASliceThatIsGoneIsNamedOrPassedOver) {
  const std::string large = absl::StrCat("7,", std::string(500'000, '1'));
  for (int i = 0; i < 16; ++i) kafka_.Write("t", 0, large);
  Name("t/000000000000@0:0-8", 8 * 5, 8);
  EXPECT_THAT(Read(0), StatusIs(absl::StatusCode::kNotFound,
                                AllOf(HasSubstr("/t partition 0"),
                                      HasSubstr("deleted"))));
  input_.reset();
  job_.mutable_train()->set_on_corrupt(job::Dataset::SKIP);
  ASSERT_OK_AND_ASSIGN(const std::vector<int> none, Read(0));
  EXPECT_THAT(none, IsEmpty());
  EXPECT_EQ(input_->skipped_records(), 4);
}

TEST_F(FollowedSliceTest, AHostileNameIsRefused) {
  Name("t/000000000000@0:0-9223372036854775807", 1, 8);
  EXPECT_THAT(Read(0), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("is no slice of the topic t")));
}

}  // namespace
}  // namespace parasol
