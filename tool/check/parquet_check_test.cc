// Parquet files whose columns differ, or are damaged, where no job reads them.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/check/data_check.h"
#include "cluster/check/job_report.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/testing/arrow_environment.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::Not;

constexpr char kFolder[] = "ml/input/arrow/testdata";
constexpr int64_t kSample = 4 << 20;  // of a start; all of these files

struct Checked {
  JobReport found;
  int64_t memory_bytes = 0;
};

// Checks the columns of a job that has an input and reads `label` of files.
void CheckInput(const std::string& files, const std::string& input,
                const std::string& label, int64_t sample_bytes,
                Checked& checked, const std::string& folder = kFolder) {
  ASSERT_OK_AND_ASSIGN(
      const job::Job job,
      ParseJob(absl::StrCat(R"(
        name: "j"
        model {
          input { )",
                            input, R"( }
          layer { name: "d" dense { units: 1 } }
          loss { mean_squared_error {} }
        }
        train { parquet { file: ")",
                            files, R"(" label { column: ")", label,
                            R"(" } } batch_size: 1 }
        optimizer { sgd { learning_rate: 1 } }
        end { steps: 3 }
      )"),
               "j.textproto"));
  DataCheck check(
      job, /*graph=*/nullptr,
      {.data_dir = folder, .max_examples = 1000, .sample_bytes = sample_bytes});
  check.Check("train", job.train());
  check.Finish();
  checked.found = check.found();
  checked.memory_bytes = check.memory_bytes();
}

// As above, with an input of this column.
void Check(const std::string& files, const std::string& column,
           const std::string& label, int64_t sample_bytes, Checked& checked,
           const std::string& folder = kFolder) {
  CheckInput(files,
             absl::StrCat(R"(name: "numbers" dense { column { name: ")", column,
                          R"(" } })"),
             label, sample_bytes, checked, folder);
}

class ParquetCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string lacks = ArrowLacks();
    if (!lacks.empty()) GTEST_SKIP() << lacks;
  }
};

TEST_F(ParquetCheckTest, OtherColumnsMayDiffer) {
  for (const int64_t sample_bytes : {int64_t{0}, kSample}) {
    for (const std::string files :
         {"day_[12].parquet", "day_[19].parquet", "day_?.parquet"}) {
      SCOPED_TRACE(absl::StrCat(files, " ", sample_bytes));
      Checked checked;
      Check(files, "x", "y", sample_bytes, checked);
      EXPECT_THAT(checked.found.faults, IsEmpty());
      ASSERT_EQ(checked.found.data_sets.size(), 1u);
      const std::vector<ColumnReport>& columns =
          checked.found.data_sets[0].columns;
      ASSERT_EQ(columns.size(), 3u);
      EXPECT_GE(columns[0].numbers.count, 4);
      EXPECT_EQ(columns[2].name, "extra");
      EXPECT_EQ(columns[2].records, 0);
      EXPECT_THAT(ToText(checked.found),
                  HasSubstr("  column extra: not looked at\n"));
    }
    Checked checked;
    Check("day_?.parquet", "extra", "y", sample_bytes, checked);
    EXPECT_THAT(checked.found.faults,
                ElementsAre(HasSubstr("there is no column \"extra\"")));
    Check("day_[19].parquet", "extra", "y", sample_bytes, checked);
    EXPECT_THAT(checked.found.faults,
                ElementsAre(AllOf(HasSubstr("column \"extra\" is float64"),
                                  HasSubstr("int64"))));
    // No column of the job is there: what it has is said all the same.
    Check("day_1.parquet", "xx", "yy", sample_bytes, checked);
    EXPECT_THAT(checked.found.faults,
                ElementsAre(HasSubstr("no column \"xx\", but x, y, extra"),
                            HasSubstr("no column \"yy\"")));
  }
}

TEST_F(ParquetCheckTest, AnInputsNameIsNoColumnIfItNamesOthers) {
  for (const int64_t sample_bytes : {int64_t{0}, kSample}) {
    Checked checked;
    CheckInput("day_[19].parquet",
               R"(name: "extra" dense { column { name: "x" } })", "y",
               sample_bytes, checked);
    EXPECT_THAT(checked.found.faults, IsEmpty());
    EXPECT_THAT(ToText(checked.found),
                HasSubstr("  column extra: not looked at\n"));
  }
}

TEST_F(ParquetCheckTest, AnInputWithoutColumnsReadsTheOnlyOne) {
  Checked checked;
  CheckInput("images.parquet", R"(name: "pixels" dense { shape: [100000] })",
             "y", /*sample_bytes=*/0, checked);
  EXPECT_THAT(checked.found.faults, IsEmpty());
  EXPECT_THAT(checked.memory_bytes, Ge(30'000'000));
  EXPECT_THAT(ToText(checked.found), Not(HasSubstr("not looked at")));
}

TEST_F(ParquetCheckTest, ADamagedPageOfAnotherColumnIsNoFault) {
  std::ifstream file(absl::StrCat(kFolder, "/none.parquet"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  constexpr char kUser[] = "u661893";
  const size_t at = bytes.find(kUser);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'U';
  const std::string folder = testing::TempDir() + "/damaged_page";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/page.parquet", std::ios::binary) << bytes;
  for (const int64_t sample_bytes : {int64_t{0}, kSample}) {
    Checked checked;
    Check("page.parquet", "half", "weight", sample_bytes, checked, folder);
    EXPECT_THAT(checked.found.faults, IsEmpty());
    Check("page.parquet", "user", "weight", sample_bytes, checked, folder);
    EXPECT_THAT(checked.found.faults,
                ElementsAre(AllOf(HasSubstr("column \"user\""),
                                  HasSubstr("rows 0 to 15 are lost"))));
  }
}

// What the set takes is what is read of it, unpacked.
TEST_F(ParquetCheckTest, TheMemoryIsOfTheColumnsThatAreRead) {
  Checked checked;
  Check("images.parquet", "image", "y", /*sample_bytes=*/0, checked);
  EXPECT_THAT(checked.memory_bytes, Ge(30'000'000));
  Check("images.parquet", "y", "y", /*sample_bytes=*/0, checked);
  EXPECT_THAT(checked.memory_bytes, Lt(10'000));
}

}  // namespace
}  // namespace parasol
