#include "cluster/job/dataset_defaults.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

job::Job Filled(const std::string& text) {
  job::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job));
  FillDatasetDefaults(job);
  if (job.has_model()) FillModelInputDefaults(*job.mutable_model());
  return job;
}

TEST(DatasetDefaultsTest, WhatIsNotSetIsAsDocumented) {
  const job::Job job = Filled(
      "train { csv { file: 'a' } split { to: 0.9 } } eval { libsvm {} }");
  EXPECT_EQ(job.train().batch_size(), 32);
  EXPECT_EQ(job.train().shuffle_buffer(), 10000);
  EXPECT_EQ(job.train().prefetch_batches(), 2);
  EXPECT_EQ(job.train().decode_threads(), 2);
  EXPECT_EQ(job.train().csv().delimiter(), ",");
  EXPECT_EQ(job.train().split().from(), 0);
  EXPECT_EQ(job.eval().shuffle_buffer(), 0);
  EXPECT_EQ(job.eval().libsvm().first_index(), 1);
  EXPECT_FALSE(job.eval().has_split());
}

TEST(DatasetDefaultsTest, NegativeLabelsAreNumbersToLossesOfNumbers) {
  const std::string sets =
      "train { libsvm {} } eval { libsvm { keep_negative_labels: false } }";
  for (const std::string loss :
       {"mean_squared_error", "mean_absolute_error", "huber", "poisson"}) {
    SCOPED_TRACE(loss);
    const job::Job numbers =
        Filled("model { loss { " + loss + " {} } } " + sets);
    EXPECT_TRUE(numbers.train().libsvm().keep_negative_labels());
    EXPECT_FALSE(numbers.eval().libsvm().keep_negative_labels());
  }
  const job::Job binary =
      Filled("model { loss { binary_crossentropy {} } } " + sets);
  EXPECT_TRUE(binary.train().libsvm().has_keep_negative_labels());
  EXPECT_FALSE(binary.train().libsvm().keep_negative_labels());
}

TEST(DatasetDefaultsTest, EvalIsReadAsTrainIsWhereItDoesNotSayOtherwise) {
  const job::Job job = Filled(
      "train { csv { file: 'a' delimiter: ';' column: 'x' column: 'y' "
      "missing: '?' missing: '-' skip_lines: 1 label { column: 'y' } } "
      "on_corrupt: SKIP } "
      "eval { csv { file: 'b' missing: 'NA' skip_lines: 0 } }");
  const job::CsvDataset& csv = job.eval().csv();
  EXPECT_THAT(csv.file(), ElementsAre("b"));
  EXPECT_EQ(csv.delimiter(), ";");
  EXPECT_THAT(csv.column(), ElementsAre("x", "y"));
  EXPECT_THAT(csv.missing(), ElementsAre("NA"));
  EXPECT_EQ(csv.skip_lines(), 0);
  EXPECT_EQ(csv.label().column(), "y");
  EXPECT_EQ(job.eval().on_corrupt(), job::Dataset::SKIP);
}

TEST(DatasetDefaultsTest, EvalTakesFilesFromNobody) {
  const job::Job job =
      Filled("train { csv { file: 'a' } } eval { csv { delimiter: ';' } }");
  EXPECT_THAT(job.eval().csv().file(), IsEmpty());
}

TEST(DatasetDefaultsTest, EvalOfAnotherFormatTakesNothing) {
  const job::Job job = Filled(
      "train { libsvm { file: 'a' first_index: 0 } } eval { csv { file: 'b' } "
      "}");
  EXPECT_FALSE(job.eval().has_libsvm());
  EXPECT_FALSE(job.eval().csv().has_label());
}

TEST(DatasetDefaultsTest, EvalNormalisesImagesAsTrainAndAugmentsNone) {
  const job::Job job = Filled(
      "train { cifar { file: 'a' } image { random_crop_padding: 4 random_flip: "
      "true mean: 0.5 stddev: 0.25 } } eval { cifar { file: 'b' } }");
  EXPECT_THAT(job.eval().image().mean(), ElementsAre(0.5f));
  EXPECT_THAT(job.eval().image().stddev(), ElementsAre(0.25f));
  EXPECT_EQ(job.eval().image().random_crop_padding(), 0);
  EXPECT_FALSE(job.eval().image().random_flip());
}

TEST(DatasetDefaultsTest, ColumnsOfInputsHaveTheirs) {
  const job::Job job = Filled(
      "model { input { name: 'n' dense { column { name: 'a' } column { name: "
      "'b' } } } input { name: 'i' ids { column { name: 'c' vocabulary { "
      "value: 'x' } } } } }");
  EXPECT_THAT(job.model().input(0).dense().shape(), ElementsAre(2));
  EXPECT_EQ(job.model().input(0).dense().column(0).stddev(), 1);
  const job::IdColumn& column = job.model().input(1).ids().column(0);
  EXPECT_EQ(column.missing(), job::IdColumn::OWN_ID);
  EXPECT_EQ(column.vocabulary().out_of_vocabulary(), 1);
}

}  // namespace
}  // namespace parasol
