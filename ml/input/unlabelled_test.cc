// Data sets of every format without labels.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/read_all.h"
#include "ml/input/testing/tf_example_writer.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kTwoNumbers[] =
    "input { name: 'x' dense { shape: 2 column { name: 'a' } column { name: "
    "'b' } } }";
constexpr char kFeatures[] = "input { name: 'features' dense { shape: 2 } }";

// The examples as one batch.
absl::StatusOr<Batch> Read(const std::string& dataset, const std::string& model,
                           bool without_labels) {
  const auto spec = FromText<job::Dataset>("batch_size: 100 " + dataset);
  ASSIGN_OR_RETURN(const ModelInputs inputs, InputsFromText(model));
  ASSIGN_OR_RETURN(const std::unique_ptr<InputPipeline> pipeline,
                   InputPipeline::Open(spec, inputs,
                                       {.data_dir = testing::TempDir(),
                                        .without_labels = without_labels}));
  ASSIGN_OR_RETURN(const Batch* batch, pipeline->Next());
  return *batch;
}

// The values of the only input, which can't be read with labels.
std::vector<float> ValuesOf(const std::string& dataset,
                            const std::string& model) {
  EXPECT_FALSE(Read(dataset, model, /*without_labels=*/false).ok()) << dataset;
  const absl::StatusOr<Batch> batch =
      Read(dataset, model, /*without_labels=*/true);
  EXPECT_OK(batch);
  if (!batch.ok()) return {};
  EXPECT_EQ(batch->labels.size(), batch->size);
  EXPECT_THAT(batch->weights, SizeIs(0));
  return batch->dense.front().values;
}

TEST(UnlabelledTest, CsvWithAHeaderLacksTheColumns) {
  WriteTestFile("u.csv", "a,b\n1,2\n3,4\n");
  EXPECT_THAT(ValuesOf("csv { file: 'u.csv' label { column: 'y' } "
                       "weight_column: 'w' }",
                       kTwoNumbers),
              ElementsAre(1, 2, 3, 4));
}

TEST(UnlabelledTest, CsvWithoutAHeaderLacksTheLabelOfTheList) {
  WriteTestFile("h.csv", "1,2\n3,4\n");
  EXPECT_THAT(ValuesOf("csv { file: 'h.csv' column: 'y' column: 'a' column: "
                       "'b' label { column: 'y' } }",
                       kTwoNumbers),
              ElementsAre(1, 2, 3, 4));
}

TEST(UnlabelledTest, LabelsThatAreThereAreNotRead) {
  WriteTestFile("l.csv", "1,2,?\n3,4,\n");
  EXPECT_THAT(ValuesOf("csv { file: 'l.csv' column: 'a' column: 'b' column: "
                       "'y' label { column: 'y' } }",
                       kTwoNumbers),
              ElementsAre(1, 2, 3, 4));
}

TEST(UnlabelledTest, CriteoIsThatOfItsTestSet) {
  std::string line = "1\t2";
  for (int i = 2; i < 39; ++i) line += "\t";
  WriteTestFile("test.txt", line + "\n");
  EXPECT_THAT(ValuesOf("criteo { file: 'test.txt' }",
                       "input { name: 'x' dense { shape: 2 column { name: "
                       "'I1' } column { name: 'I2' } } }"),
              ElementsAre(1, 2));
}

TEST(UnlabelledTest, ATfRecordLacksTheFeatures) {
  WriteTestFile("u.tfrecord", TfRecord(ExampleOf(RealFeature("a", {1}) +
                                                 RealFeature("b", {2}))));
  EXPECT_THAT(ValuesOf("tfrecord { file: 'u.tfrecord' label: 'y' weight: 'w' }",
                       kTwoNumbers),
              ElementsAre(1, 2));
}

TEST(UnlabelledTest, LibsvmLinesBeginWithAFeature) {
  WriteTestFile("u.libsvm", "1:5 2:6\n2:7 # a comment\n");
  EXPECT_THAT(ValuesOf("libsvm { file: 'u.libsvm' }", kFeatures),
              ElementsAre(5, 6, 0, 7));
  // A label that is no number is passed over.
  WriteTestFile("l.libsvm", "? 1:5 2:6\n");
  EXPECT_THAT(ValuesOf("libsvm { file: 'l.libsvm' }", kFeatures),
              ElementsAre(5, 6));
}

TEST(UnlabelledTest, ImagesHaveNoFileOfLabels) {
  IdxImages images = CountingImages(2, 1, 2);
  images.pixels = {0, 255, 255, 0};
  WriteTestFile("u.idx", IdxImagesFile(images));
  EXPECT_THAT(ValuesOf("idx { images: 'u.idx' labels: 'none' }",
                       "input { name: 'image' dense { shape: 1 shape: 2 } }"),
              ElementsAre(0, 1, 1, 0));
}

TEST(UnlabelledTest, AClassOfSeveralIsAcceptedByTheLoss) {
  WriteTestFile("u2.csv", "a,b\n1,2\n");
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      Read("csv { file: 'u2.csv' label { column: 'y' } }",
           std::string(kTwoNumbers) + " layer { dense { units: 3 } } loss { "
                                      "categorical_crossentropy {} }",
           /*without_labels=*/true));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0, 0));
}

}  // namespace
}  // namespace parasol
