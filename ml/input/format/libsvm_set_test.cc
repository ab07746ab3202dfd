#include "ml/input/format/libsvm_set.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/read_all.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kLines[] =
    "# a comment\n"
    "+1 1:0.5 3:-2 # and one more\n"
    "\n"
    "-1\t 2:1e1 \r\n"
    "-1\n";
constexpr char kDense[] =
    "loss { binary_crossentropy {} } input { name: 'x' dense { shape: 3 } } ";
constexpr char kIds[] = "input { name: 'i' ids {} } ";

TEST(LibsvmSetTest, IsADenseVectorAndIdsWithWeights) {
  for (const std::string& bytes : {std::string(kLines), Gzip(kLines)}) {
    WriteTestFile("lines.svm", bytes);
    ASSERT_OK_AND_ASSIGN(
        const Batch batch,
        ReadAll("libsvm { file: 'lines.svm' }", absl::StrCat(kDense, kIds)));
    EXPECT_EQ(batch.size, 3);
    EXPECT_THAT(batch.labels, ElementsAre(1, 0, 0));
    EXPECT_THAT(batch.dense[0].values,
                ElementsAre(0.5, 0, -2, 0, 10, 0, 0, 0, 0));
    EXPECT_THAT(batch.ids[0].offsets, ElementsAre(0, 2, 3, 3));
    EXPECT_THAT(batch.ids[0].ids, ElementsAre(1, 3, 2));
    EXPECT_THAT(batch.ids[0].weights, ElementsAre(0.5, -2, 10));
  }
}

TEST(LibsvmSetTest, IndicesMayBeginAtZeroAndLabelsStayNegative) {
  WriteTestFile("zero.svm", "-1 0:1 2:3\n");
  ASSERT_OK_AND_ASSIGN(const Batch batch,
                       ReadAll("libsvm { file: 'zero.svm' first_index: 0 "
                               "keep_negative_labels: true }",
                               "loss { mean_squared_error {} } input { name: "
                               "'x' dense { shape: 3 } }"));
  EXPECT_THAT(batch.dense[0].values, ElementsAre(1, 0, 3));
  EXPECT_THAT(batch.labels, ElementsAre(-1));
}

TEST(LibsvmSetTest, CorruptLinesAreNamedOrLeftOut) {
  const struct {
    std::string line;
    std::string want;
  } cases[] = {
      {"x 1:1", "line 2 at byte 6: label \"x\" is not a number"},
      {"1 a:1",
       "line 2 at byte 8: feature \"a:1\" has no index that is an integer"},
      {"1 0:1", "line 2 at byte 8: feature \"0:1\" has no index from 1"},
      {"1 1:1 2", "line 2 at byte 12: feature \"2\" is not index:value"},
      {"1 1:x",
       "line 2 at byte 8: feature \"1:x\" has a value that is not a finite"},
      {"1 1:",
       "line 2 at byte 8: feature \"1:\" has a value that is not a finite"},
      {"1 1:nan",
       "line 2 at byte 8: feature \"1:nan\" has a value that is not a finite"},
      {"1 1:1e300", "feature \"1:1e300\" has a value that is not a finite"},
      {"1e300 1:1", "label 1e+300 is beyond float32"},
      {"1 1:3e38 1:3e38", "index 1 add up to more than a float32"},
      {"1 4:1", "line 2 at byte 6: index 4 is beyond 3 features from 1"},
      {"1 9223372036854775807:1", "is beyond 3 features"},
      {"1 9223372036854775808:1", "is beyond 3 features"},
      {"1 18446744073709551616:1", "has an index beyond 64 bits"},
      {"1 -5:1", "has no index from 1"},
  };
  const std::string dataset = "libsvm { file: 'corrupt.svm' } ";
  for (const auto& c : cases) {
    SCOPED_TRACE(c.line);
    WriteTestFile("corrupt.svm", "1 1:1\n" + c.line + "\n0 3:3\n");
    EXPECT_THAT(ReadAll(dataset, kDense),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("/corrupt.svm line 2 at byte "),
                               HasSubstr(c.want))));
    ASSERT_OK_AND_ASSIGN(const Batch rest,
                         ReadAll(dataset + "on_corrupt: SKIP", kDense));
    EXPECT_THAT(rest.labels, ElementsAre(1, 0));
    EXPECT_THAT(rest.dense[0].values, ElementsAre(1, 0, 0, 0, 0, 3));
  }
}

TEST(LibsvmSetTest, IdsAreAny64Bits) {
  WriteTestFile("ids.svm",
                "1 0:1 -5:1 9223372036854775808:1\n"
                "0 18446744073709551615:2\n");
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll("libsvm { file: 'ids.svm' }",
              "loss { binary_crossentropy {} } input { name: 'x' ids {} }"));
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(0, static_cast<uint64_t>(-5),
                                            uint64_t{1} << 63, UINT64_MAX));
  WriteTestFile("ids.svm", "1 18446744073709551616:1\n");
  EXPECT_THAT(
      ReadAll("libsvm { file: 'ids.svm' }",
              "loss { binary_crossentropy {} } input { name: 'x' ids {} }"),
      StatusIs(absl::StatusCode::kDataLoss,
               HasSubstr("has an index beyond 64 bits")));
}

TEST(LibsvmSetTest, TwoClassesDoNotBecomeOne) {
  const std::string dataset = "libsvm { file: 'three.svm' ";
  for (const char* lines :
       {"-1 1:1\n0 2:1\n+1 3:1\n", "0 1:1\n1 1:1\n-1 1:1"}) {
    WriteTestFile("three.svm", lines);
    for (const char* skip : {"}", "} on_corrupt: SKIP"}) {
      EXPECT_THAT(ReadAll(dataset + skip, kDense),
                  StatusIs(absl::StatusCode::kDataLoss,
                           AllOf(HasSubstr("/three.svm line "),
                                 HasSubstr("-1 is read as 0"))));
    }
    ASSERT_OK_AND_ASSIGN(
        const Batch kept,
        ReadAll(dataset + "keep_negative_labels: true }",
                "loss { mean_squared_error {} } layer { dense { units: 1 } } "
                "input { name: 'x' dense { shape: 3 } }"));
    EXPECT_THAT(kept.labels, testing::Contains(-1));
  }
  WriteTestFile("three.svm", "-1 1:1\n+1 3:1\n-1.0 2:1\n");
  ASSERT_OK_AND_ASSIGN(const Batch two, ReadAll(dataset + "}", kDense));
  EXPECT_THAT(two.labels, ElementsAre(0, 1, 0));
}

TEST(LibsvmSetTest, ValuesOfOneIndexAddUp) {
  WriteTestFile("twice.svm", "1 2:1 2:0.5\n");
  ASSERT_OK_AND_ASSIGN(const Batch batch,
                       ReadAll("libsvm { file: 'twice.svm' }", kDense));
  EXPECT_THAT(batch.dense[0].values, ElementsAre(0, 1.5, 0));
}

TEST(LibsvmSetTest, AByteOrderMarkIsPassedOver) {
  WriteTestFile("mark.svm",
                "\xef\xbb\xbf"
                "1 1:1\n");
  ASSERT_OK_AND_ASSIGN(const Batch batch,
                       ReadAll("libsvm { file: 'mark.svm' }", kDense));
  EXPECT_THAT(batch.labels, ElementsAre(1));
}

TEST(LibsvmSetTest, ALabelThatTheLossHasNoMeaningForIsCorrupt) {
  WriteTestFile("label.svm", "1 1:1\n2 1:2\n0 1:3\n");
  const struct {
    std::string model;
    std::string want;
  } cases[] = {
      {kDense, "label 2 is not between 0 and 1"},
      {"loss { sparse_categorical_crossentropy {} } layer { dense { units: 2 } "
       "} input { name: 'x' dense { shape: 3 } }",
       "label 2 is not one of 2 classes"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ReadAll("libsvm { file: 'label.svm' }", c.model),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("label.svm line 2 at byte 6"),
                               HasSubstr(c.want))));
    ASSERT_OK_AND_ASSIGN(
        const Batch rest,
        ReadAll("libsvm { file: 'label.svm' } on_corrupt: SKIP", c.model));
    EXPECT_THAT(rest.labels, ElementsAre(1, 0));
  }
}

TEST(LibsvmSetTest, NamedColumnsAndWideLabelsAreRefused) {
  WriteTestFile("fine.svm", "1 1:1\n");
  EXPECT_THAT(ReadAll("libsvm { file: 'fine.svm' }",
                      "input { name: 'i' ids { column { name: 'a' } } }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model input i names columns; libsvm has")));
  EXPECT_THAT(ReadAll("libsvm { file: 'fine.svm' }",
                      absl::StrCat(kDense, "layer { dense { units: 2 } }")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("wants 2 numbers as an example's label")));
}

}  // namespace
}  // namespace parasol
