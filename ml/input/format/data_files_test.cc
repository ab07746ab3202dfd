#include "ml/input/format/data_files.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/testing/input_files.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Reads all files of a sample and returns what was read of each.
std::vector<std::string> Read(const std::string& pattern, int64_t sample_bytes,
                              bool& is_sample) {
  std::vector<std::string> read;
  absl::StatusOr<DataFiles> files =
      DataFiles::Find(testing::TempDir(), {pattern}, "file", sample_bytes);
  EXPECT_OK(files);
  while (files->HasNext()) {
    absl::StatusOr<DataFile> file = files->ReadNext(/*is_text=*/true);
    EXPECT_OK(file);
    read.push_back(file->bytes);
  }
  is_sample = files->is_sample();
  return read;
}

TEST(DataFilesTest, ASampleIsOfTheFirstAndTheLastFiles) {
  for (int i = 0; i < 9; ++i) {
    WriteTestFile(absl::StrCat("data_", i), std::string(10, '0' + i));
  }
  bool is_sample = false;
  EXPECT_THAT(Read("data_*", 8, is_sample),
              ElementsAre("00", "22", "55", "88"));
  EXPECT_TRUE(is_sample);
  EXPECT_EQ(Read("data_*", 90, is_sample).size(), 9);
  EXPECT_FALSE(is_sample);
  EXPECT_EQ(Read("data_*", 0, is_sample).size(), 9);
  EXPECT_FALSE(is_sample);
}

TEST(DataFilesTest, PackedFilesTakeNoMoreThanTheSample) {
  for (int i = 0; i < 4; ++i) {
    WriteTestFile(absl::StrCat("packed_", i), Gzip(std::string(1000, '0' + i)));
  }
  bool is_sample = false;
  EXPECT_THAT(Read("packed_*", 1500, is_sample),
              ElementsAre(std::string(1000, '0'), std::string(500, '1')));
  EXPECT_TRUE(is_sample);
}

TEST(DataFilesTest, AFileOfAnotherFormatIsNamed) {
  const std::string path = WriteTestFile("table.csv", "PAR1\x15\x04");
  EXPECT_THAT(ReadDataFile(path, /*is_text=*/true, 100),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("table.csv: is a Parquet file")));
  // Also inside gzip.
  WriteTestFile("table.csv", Gzip(std::string(257, 'x') + "ustar"));
  EXPECT_THAT(ReadDataFile(path, /*is_text=*/true, 1000),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("table.csv: is a tar archive")));
}

}  // namespace
}  // namespace parasol
