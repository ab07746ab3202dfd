// Columns whose texts go along with the examples.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/read_all.h"
#include "ml/input/testing/tf_example_writer.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kOneNumber[] =
    "input { name: 'x' dense { column { name: 'a' } } }";

absl::StatusOr<std::vector<std::vector<std::string>>> Kept(
    const std::string& dataset, const std::string& model,
    const std::vector<std::string>& kept) {
  const auto spec = FromText<job::Dataset>("batch_size: 100 " + dataset);
  ASSIGN_OR_RETURN(ModelInputs inputs, InputsFromText(model));
  inputs.kept = kept;
  ASSIGN_OR_RETURN(const std::unique_ptr<InputPipeline> pipeline,
                   InputPipeline::Open(spec, inputs,
                                       {.data_dir = testing::TempDir(),
                                        .without_labels = true}));
  ASSIGN_OR_RETURN(const Batch* batch, pipeline->Next());
  return batch->kept;
}

TEST(KeptColumnsTest, CsvKeepsTextsAsTheyAreAlsoOfLabels) {
  WriteTestFile("k.csv",
                "id,a,y\n007,1,no\n\"x, \"\"y\"\"\",oops,no\nNA,3,\n,4,yes\n");
  EXPECT_THAT(Kept("on_corrupt: SKIP csv { file: 'k.csv' label { column: 'y' } "
                   "missing: 'NA' }",
                   kOneNumber, {"y", "id"}),
              IsOkAndHolds(ElementsAre(ElementsAre("no", "", "yes"),
                                       ElementsAre("007", "NA", ""))));
}

TEST(KeptColumnsTest, AnotherNameIsRefused) {
  WriteTestFile("k.csv", "id,a\n1,1\n");
  EXPECT_THAT(
      Kept("csv { file: 'k.csv' }", kOneNumber, {"idd"}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("column to keep: the data set has no column \"idd\", "
                         "but id, a; did you mean \"id\"?")));
  WriteTestFile("k.svm", "1 1:2\n");
  EXPECT_THAT(Kept("libsvm { file: 'k.svm' }",
                   "input { name: 'features' dense { shape: 2 } }", {"id"})
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("libsvm has no columns but its features")));
}

TEST(KeptColumnsTest, ATfExampleKeepsAllValuesOfAFeature) {
  WriteTestFile("k.tfrecord", TfRecord(ExampleOf(RealFeature("a", {1}) +
                                                 TextFeature("id", {"x"}) +
                                                 IntegerFeature("n", {1, 2}))) +
                                  TfRecord(ExampleOf(RealFeature("a", {2}))));
  EXPECT_THAT(
      Kept("tfrecord { file: 'k.tfrecord' }", kOneNumber, {"id", "n"}),
      IsOkAndHolds(ElementsAre(ElementsAre("x", ""), ElementsAre("1 2", ""))));
  EXPECT_THAT(
      Kept("tfrecord { file: 'k.tfrecord' }", kOneNumber, {"m"}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("column to keep: no example has a feature")));
}

}  // namespace
}  // namespace parasol
