#include "loop/file_data.h"

#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/dataset.h"

namespace parasol::loop {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kInputs[] =
    "input { name: 'ids' ids { column { name: 'a' identity { num_ids: 5 } "
    "$0 } column { name: 'b' identity { num_ids: 9 } } } }"
    "input { name: 'x' dense { column { name: 'c' } column { name: 'd' } } }";

class FileDataTest : public ::testing::Test {
 protected:
  // Returns the first batch of a file of three lines.
  absl::StatusOr<std::optional<Batch>> FirstBatch(const std::string& lines,
                                                  const std::string& missing) {
    const std::string name = "file_data_test.csv";
    std::ofstream(absl::StrCat(testing::TempDir(), "/", name)) << lines;
    std::string inputs = kInputs;
    inputs.replace(inputs.find("$0"), 2, missing);
    absl::StatusOr<Dataset> data = FromFiles(
        {.dataset = absl::StrCat(
             "csv { file: '", name,
             "' column: ['a', 'b', 'c', 'd', 'y'] label { column: 'y' } } "
             "batch_size: 3 shuffle_buffer: 0"),
         .inputs = inputs,
         .data_dir = testing::TempDir()});
    if (!data.ok()) return data.status();
    absl::StatusOr<std::unique_ptr<Stream>> stream = data->Open();
    if (!stream.ok()) return stream.status();
    return (*stream)->Next();
  }
};

TEST_F(FileDataTest, InputsComeInTheModelsOrder) {
  ASSERT_OK_AND_ASSIGN(const std::optional<Batch> batch,
                       FirstBatch("4,7,.5,1,0\n0,8,.25,2,1\n3,3,0,3,2\n", ""));
  ASSERT_TRUE(batch.has_value());
  ASSERT_THAT(batch->tensors, SizeIs(3));
  const Tensor& ids = (*batch)[0];
  EXPECT_EQ(ids.shape(), (TensorShape{3, 2}));
  // The ids of b come behind the 6 of a, of which the last is a missing
  // value's.
  EXPECT_THAT(ids.ints(), ElementsAre(4, 13, 0, 14, 3, 9));
  EXPECT_EQ((*batch)[1].shape(), (TensorShape{3, 2}));
  EXPECT_THAT((*batch)[1].values(), ElementsAre(.5, 1, .25, 2, 0, 3));
  EXPECT_THAT((*batch)[2].ints(), ElementsAre(0, 1, 2));
}

TEST_F(FileDataTest, ExamplesOfDifferentNumbersOfIdsAreAnError) {
  EXPECT_THAT(
      FirstBatch("4,7,.5,1,0\n,8,.25,2,1\n3,3,0,3,2\n", "missing: NO_ID")
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("a tensor has as many of each")));
}

}  // namespace
}  // namespace parasol::loop
