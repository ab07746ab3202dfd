#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/input_pipeline.h"
#include "proto/job.pb.h"

// make_digits as a user starts it.
namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr absl::Duration kLimit = absl::Seconds(30);

std::string Directory() {
  return absl::StrCat(
      testing::TempDir(), "/",
      testing::UnitTest::GetInstance()->current_test_info()->name());
}

CompletedProcess MakeDigits(const std::vector<std::string>& flags) {
  std::vector<std::string> argv = {fs::absolute("deploy/local/make_digits")};
  argv.insert(argv.end(), flags.begin(), flags.end());
  const auto made = RunSubprocess({.argv = argv}, kLimit);
  EXPECT_OK(made);
  return *made;
}

TEST(MakeDigitsTest, AJobThatReadsMnistReadsThem) {
  EXPECT_EQ(MakeDigits({"--out=" + Directory(), "--train=300", "--test=50"})
                .end.code(),
            0);
  const struct {
    std::string prefix;
    int64_t examples;
  } sets[] = {{"train", 300}, {"t10k", 50}};
  for (const auto& [prefix, examples] : sets) {
    SCOPED_TRACE(prefix);
    job::Dataset dataset;
    dataset.mutable_idx()->set_images(prefix + "-images-idx3-ubyte.gz");
    dataset.mutable_idx()->set_labels(prefix + "-labels-idx1-ubyte.gz");
    dataset.set_batch_size(10);
    job::Model model;
    model.add_input_shape(28);
    model.add_input_shape(28);
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<InputPipeline> pipeline,
        InputPipeline::Open(
            dataset, *ModelInputsOf(model, {.kind = LabelForm::Kind::kClass}),
            {.data_dir = Directory()}));
    EXPECT_EQ(pipeline->total_examples(), examples);
    ASSERT_OK_AND_ASSIGN(const Batch* batch, pipeline->Next());
    EXPECT_THAT(batch->labels,
                UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  }
}

TEST(MakeDigitsTest, LeavesNothingButTheFourFiles) {
  const std::vector<std::string> flags = {"--out=" + Directory(), "--train=20",
                                          "--test=10"};
  EXPECT_EQ(MakeDigits(flags).end.code(), 0);
  EXPECT_EQ(MakeDigits(flags).end.code(), 0);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(Directory())) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names, UnorderedElementsAre("train-images-idx3-ubyte.gz",
                                          "train-labels-idx1-ubyte.gz",
                                          "t10k-images-idx3-ubyte.gz",
                                          "t10k-labels-idx1-ubyte.gz"));
}

TEST(MakeDigitsTest, BadFlagsAreNamedAndExitTwo) {
  const CompletedProcess nowhere = MakeDigits({});
  EXPECT_EQ(nowhere.end.code(), 2);
  EXPECT_THAT(nowhere.standard_error, HasSubstr("--out is not set"));
  const CompletedProcess none =
      MakeDigits({"--out=" + Directory(), "--train=0"});
  EXPECT_EQ(none.end.code(), 2);
  EXPECT_THAT(none.standard_error, HasSubstr("--train is 0"));
}

TEST(MakeDigitsTest, PlaceThatCannotBeWrittenIsNamed) {
  const CompletedProcess result = MakeDigits({"--out=/dev/null/digits"});
  EXPECT_NE(result.end.code(), 0);
  EXPECT_THAT(result.standard_error, HasSubstr("/dev/null"));
}

}  // namespace
}  // namespace parasol
