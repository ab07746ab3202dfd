#include "worker/followed/followed_input.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"
#include "ml/model/graph_inputs.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kJob[] = R"(
  name: "followed"
  seed: 5
  model {
    input { name: "x" dense { column { name: "x" } } }
    layer { input: "x" dense { units: 1 } }
    loss { mean_squared_error {} }
  }
  train {
    csv { file: "*.csv" label { column: "y" } }
    follow: true
    batch_size: 4
  }
  end { never {} }
)";

// Files of which the k-th, from 0, has the records 100 k, 100 k + 1, …
class FollowedInputTest : public testing::Test {
 protected:
  FollowedInputTest()
      : directory_(
            testing::TempDir() + "/followed_" +
            testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    job_ = ParseJob(kJob, "followed.textproto").value();
    FillDefaults(job_);
  }

  // Writes a file, which the chief names.
  void AddFile(int records) {
    const std::string name = absl::StrCat(names_, ".csv");
    Write(name, 100 * names_++, records);
    wire::ClaimStepsResponse answer;
    wire::TrainingFile* file = answer.add_file();
    file->set_path(name);
    file->set_records(records);
    file->set_first_batch(batches_);
    file->set_batches((records + 3) / 4);
    batches_ += file->batches();
    files_.Take(answer);
  }
  void Write(const std::string& name, int first, int records) {
    std::ofstream out(directory_ + "/" + name);
    out << "x,y\n";
    for (int i = 0; i < records; ++i) out << first + i << "," << i << "\n";
  }
  FollowedInput& input() {
    if (input_ == nullptr) {
      const Graph graph = ResolveGraph(job_.model()).value();
      input_ = std::make_unique<FollowedInput>(
          FollowedInput::Options{
              .dataset = job_.train(),
              .inputs = TrainingInputsOf(job_.model(), graph).value(),
              .data_dir = directory_,
              .seed = job_.seed()},
          files_);
    }
    return *input_;
  }
  absl::StatusOr<std::vector<int>> Next() {
    absl::StatusOr<const Batch*> batch = input().Next();
    if (!batch.ok()) return batch.status();
    std::vector<int> records;
    if ((*batch)->size == 0) return records;
    for (const float x : (*batch)->dense[0].values) records.push_back(x);
    return records;
  }
  // Returns the batches from `first` to `end` - 1.
  std::vector<std::vector<int>> Read(int64_t first, int64_t end) {
    std::vector<std::vector<int>> batches;
    for (int64_t number = first; number < end; ++number) {
      std::vector<int64_t> next;
      for (int64_t i = number; i < std::min(number + 3, end); ++i) {
        next.push_back(i);
      }
      input().SetNext(next);
      batches.push_back(Next().value());
    }
    return batches;
  }

  const std::string directory_;
  job::Job job_;
  TrainingFiles files_;
  std::unique_ptr<FollowedInput> input_;
  int names_ = 0;
  int64_t batches_ = 0;  // of all files
};

TEST_F(FollowedInputTest, ReadsEachRecordOnceThroughTheFiles) {
  const std::vector<int> sizes = {9, 1, 4, 13};
  for (const int size : sizes) AddFile(size);
  std::multiset<int> seen;
  for (const auto& batch : Read(0, batches_)) {
    for (const int record : batch) {
      EXPECT_EQ(record / 100, batch[0] / 100) << "a batch is of one file";
      seen.insert(record);
    }
  }
  std::multiset<int> all;
  for (int file = 0; file < 4; ++file) {
    for (int i = 0; i < sizes[file]; ++i) all.insert(100 * file + i);
  }
  EXPECT_EQ(seen, all);
}

TEST_F(FollowedInputTest, ABatchIsTheSameWhoeverReadsItAndWhen) {
  for (int i = 0; i < 4; ++i) AddFile(11);
  const auto all = Read(0, batches_);
  input_.reset();
  for (const int64_t number : {7, 2, 11, 0, 8, 3}) {
    input().SetNext({number});
    EXPECT_THAT(Next(), IsOkAndHolds(all[number])) << number;
  }
}

TEST_F(FollowedInputTest, EachFileHasAnOrderOfItsOwn) {
  AddFile(40);
  AddFile(40);
  const auto all = Read(0, 20);
  int differ = 0;
  for (int i = 0; i < 10; ++i) differ += all[i][0] + 100 != all[10 + i][0];
  EXPECT_GT(differ, 3);
}

TEST_F(FollowedInputTest, ABatchStaysValidWhileItsFileIsClosed) {
  AddFile(4);
  AddFile(4);
  AddFile(4);
  input().SetNext({0});
  ASSERT_OK_AND_ASSIGN(const Batch* const first, input().Next());
  const std::vector<float> values = first->dense[0].values;
  input().SetNext({2});
  ASSERT_OK(input().Next().status());
  EXPECT_EQ(first->dense[0].values, values);
}

TEST_F(FollowedInputTest, ABatchStaysValidHoweverManyFilesAreClosed) {
  for (int i = 0; i < 12; ++i) AddFile(4);
  input().SetNext({0, 1});
  ASSERT_OK_AND_ASSIGN(const Batch* const first, input().Next());
  const std::vector<float> values = first->dense[0].values;
  ASSERT_OK_AND_ASSIGN(const Batch* const second, input().Next());
  const std::vector<float> second_values = second->dense[0].values;
  // Their batches are others' now.
  input().SetNext({2, 3, 4, 5, 6, 7, 8, 9});
  input().SetNext({10});
  EXPECT_EQ(first->dense[0].values, values);
  ASSERT_OK(input().Next().status());
  EXPECT_EQ(second->dense[0].values, second_values);
}

TEST_F(FollowedInputTest, ABatchThatOthersHaveTrainedIsEmpty) {
  for (int i = 0; i < 4; ++i) AddFile(8);
  input().SetNext({0, 1});
  EXPECT_THAT(Next(), IsOkAndHolds(testing::SizeIs(4)));
  wire::ClaimStepsResponse answer;
  answer.set_trained_batches(6);
  files_.Take(answer);
  input().SetNext({1});
  EXPECT_THAT(Next(), IsOkAndHolds(testing::SizeIs(4))) << "its file is open";
  input().SetNext({4, 5, 6});
  EXPECT_THAT(Next(), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(Next(), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(Next(), IsOkAndHolds(testing::SizeIs(4)));
  EXPECT_EQ(input().skipped_records(), 0);
}

TEST_F(FollowedInputTest, AFileOfAnotherSizeHasChanged) {
  AddFile(8);
  wire::ClaimStepsResponse answer;
  *answer.add_file() = *files_.FileOf(0);
  const auto bytes = static_cast<int64_t>(fs::file_size(directory_ + "/0.csv"));
  answer.mutable_file(0)->set_bytes(bytes);
  files_.Take(answer);
  input().SetNext({0});
  EXPECT_THAT(Next(), IsOkAndHolds(testing::SizeIs(4)));
  input_.reset();
  std::ofstream(directory_ + "/0.csv", std::ios::app) << " ";
  input().SetNext({0});
  EXPECT_THAT(
      Next(),
      StatusIs(absl::StatusCode::kDataLoss,
               testing::AllOf(HasSubstr("has changed"),
                              HasSubstr(absl::StrCat("had ", bytes, " bytes")),
                              HasSubstr(absl::StrCat("has ", bytes + 1)))));
}

TEST_F(FollowedInputTest, NoRecordIsLeftOutForAFolderThatIsNotThere) {
  job_.mutable_train()->set_on_corrupt(job::Dataset::SKIP);
  AddFile(8);
  fs::rename(directory_, directory_ + "_away");
  input().SetNext({0, 1});
  EXPECT_THAT(Next(), StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("no folder " + directory_)));
  EXPECT_EQ(input().skipped_records(), 0);
  fs::remove_all(directory_ + "_away");
}

TEST_F(FollowedInputTest, AFileThatHasGoneOrChangedIsNamed) {
  AddFile(8);
  AddFile(8);
  fs::remove(directory_ + "/0.csv");
  Write("1.csv", 100, 3);
  input().SetNext({0, 1});
  EXPECT_THAT(Next(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("0.csv")));
  input_.reset();
  input().SetNext({2});
  EXPECT_THAT(Next(), StatusIs(absl::StatusCode::kDataLoss,
                               HasSubstr("8 records, and it has 3")));
}

TEST_F(FollowedInputTest, SuchAFileIsLeftOutAndItsRecordsAreCounted) {
  job_.mutable_train()->set_on_corrupt(job::Dataset::SKIP);
  AddFile(9);
  AddFile(4);
  fs::remove(directory_ + "/0.csv");
  const auto batches = Read(0, 4);
  EXPECT_THAT(batches, ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(),
                                   UnorderedElementsAre(100, 101, 102, 103)));
  EXPECT_EQ(input().skipped_records(), 9);
}

TEST_F(FollowedInputTest,
       AFileOfWhichNoRecordIsGoodEndsNothingIfTheyAreSkipped) {
  job_.mutable_train()->set_on_corrupt(job::Dataset::SKIP);
  AddFile(4);
  AddFile(4);
  std::ofstream(directory_ + "/0.csv") << "x,y\na,b\nc,d\ne,f\ng,h\n";
  const auto batches = Read(0, 2);
  EXPECT_THAT(batches[0], IsEmpty());
  EXPECT_THAT(batches[1], UnorderedElementsAre(100, 101, 102, 103));
  EXPECT_EQ(input().skipped_records(), 4);
}

TEST_F(FollowedInputTest, ABatchThatTheChiefHasNotNamedIsAnError) {
  AddFile(4);
  input().SetNext({5});
  EXPECT_THAT(Next(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("batch 5")));
}

}  // namespace
}  // namespace parasol
