#include "worker/step/training_files.h"

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

wire::ClaimStepsResponse Answer(int64_t trained) {
  wire::ClaimStepsResponse answer;
  answer.set_trained_batches(trained);
  return answer;
}

void AddFile(const std::string& path, int64_t first, int64_t batches,
             wire::ClaimStepsResponse& answer) {
  wire::TrainingFile* file = answer.add_file();
  file->set_path(path);
  file->set_first_batch(first);
  file->set_batches(batches);
}

int64_t KnownOf(TrainingFiles& files) {
  wire::ClaimStepsRequest request;
  files.Tell(request);
  return request.known_batches();
}

std::string PathOf(const TrainingFiles& files, int64_t batch) {
  const std::optional<wire::TrainingFile> file = files.FileOf(batch);
  return file ? file->path() : "";
}

TEST(TrainingFiles, FindsTheFileOfABatch) {
  TrainingFiles files;
  EXPECT_EQ(KnownOf(files), 0);
  EXPECT_EQ(PathOf(files, 0), "");
  wire::ClaimStepsResponse answer = Answer(0);
  AddFile("a", 2, 3, answer);
  AddFile("b", 5, 1, answer);
  files.Take(answer);
  EXPECT_EQ(KnownOf(files), 6);
  EXPECT_EQ(PathOf(files, 1), "") << "trained before this worker came";
  EXPECT_EQ(PathOf(files, 2), "a");
  EXPECT_EQ(PathOf(files, 4), "a");
  EXPECT_EQ(PathOf(files, 5), "b");
  EXPECT_EQ(PathOf(files, 6), "");
}

TEST(TrainingFiles, AnAnswerThatIsRepeatedChangesNothing) {
  TrainingFiles files;
  wire::ClaimStepsResponse answer = Answer(0);
  AddFile("a", 0, 3, answer);
  files.Take(answer);
  files.Take(answer);
  AddFile("b", 3, 2, answer);
  files.Take(answer);
  EXPECT_EQ(KnownOf(files), 5);
  EXPECT_EQ(PathOf(files, 2), "a");
  EXPECT_EQ(PathOf(files, 4), "b");
}

TEST(TrainingFiles, DropsFilesThatNobodyWillBeGrantedAnyMore) {
  TrainingFiles files;
  wire::ClaimStepsResponse answer = Answer(0);
  AddFile("a", 0, 3, answer);
  AddFile("b", 3, 3, answer);
  files.Take(answer);
  files.Take(Answer(4));
  EXPECT_EQ(PathOf(files, 2), "");
  EXPECT_EQ(PathOf(files, 3), "b");
  files.Take(Answer(6));
  EXPECT_EQ(PathOf(files, 5), "");
  EXPECT_EQ(KnownOf(files), 6);
}

// It may grant batches again that were trained for the chief before.
TEST(TrainingFiles, AnotherChiefNamesAllFilesAnew) {
  TrainingFiles files;
  wire::ClaimStepsResponse answer = Answer(3);
  AddFile("a", 0, 3, answer);
  AddFile("b", 3, 3, answer);
  files.Take(answer);
  EXPECT_EQ(PathOf(files, 0), "");
  files.StartOver();
  files.Take(answer);
  EXPECT_EQ(KnownOf(files), 0) << "an answer to a claim before that";
  answer.set_trained_batches(0);
  files.Take(answer);
  EXPECT_EQ(PathOf(files, 0), "a");
  EXPECT_EQ(PathOf(files, 3), "b");
  EXPECT_EQ(KnownOf(files), 6);
}

TEST(TrainingFiles, KnowsWhichBatchesAreTrained) {
  TrainingFiles files;
  EXPECT_FALSE(files.IsTrained(0));
  files.Take(Answer(4));
  EXPECT_TRUE(files.IsTrained(3));
  EXPECT_FALSE(files.IsTrained(4));
  files.StartOver();
  KnownOf(files);
  files.Take(Answer(2));
  EXPECT_FALSE(files.IsTrained(3)) << "another chief may grant it again";
}

}  // namespace
}  // namespace parasol
