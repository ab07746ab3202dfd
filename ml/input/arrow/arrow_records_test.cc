// What becomes of files that Arrow can't read, or that change meanwhile. A
// library whose functions are the real ones, but for one of them, shows it.

#include "ml/input/arrow/arrow_records.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/testing/arrow_environment.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

// What the functions below have: C functions have no other state.
ArrowLibrary* real = nullptr;
std::string* changed_file = nullptr;
int calls_before = 0;  // calls that go well before one that does not

int Fail(char* error, int code) {
  std::snprintf(error, PARASOL_ARROW_ERROR_BYTES, "a bad page");
  return code;
}

int NextLacksMemory(ParasolArrowFile* file, ArrowArray* array, char* error) {
  if (calls_before-- > 0) return real->next(file, array, error);
  return Fail(error, PARASOL_ARROW_NO_MEMORY);
}

int NextIsDamaged(ParasolArrowFile* file, ArrowArray* array, char* error) {
  if (calls_before-- > 0) return real->next(file, array, error);
  return Fail(error, 1);
}

int NextIsDamagedAndTheFileChanges(ParasolArrowFile* file, ArrowArray* array,
                                   char* error) {
  if (calls_before-- != 0) return real->next(file, array, error);
  std::ofstream(*changed_file, std::ios::app) << "more";
  return Fail(error, 1);
}

int FileChangesBeforeAStart(ParasolArrowFile* file, int64_t group,
                            const int* columns, size_t count, char* error) {
  if (calls_before-- == 0) {
    std::ofstream(*changed_file, std::ios::app) << "more";
  }
  return real->start(file, group, columns, count, error);
}

std::string TestData(const std::string& name) {
  return "ml/input/arrow/testdata/" + name;
}

class ArrowRecordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string lacks = ArrowLacks();
    if (!lacks.empty()) GTEST_SKIP() << lacks;
    ASSERT_OK_AND_ASSIGN(library_, ArrowLibrary::Open());
    real_ = library_;
    real = &real_;
    copy_ = testing::TempDir() + "/records.parquet";
    std::filesystem::copy_file(
        TestData("none.parquet"), copy_,
        std::filesystem::copy_options::overwrite_existing);
    std::filesystem::permissions(copy_, std::filesystem::perms::owner_all);
    changed_file = &copy_;
    calls_before = 0;
  }

  absl::StatusOr<ArrowRecords> Convert(const std::string& path,
                                       const std::vector<std::string>& columns,
                                       bool skip_corrupt = true) {
    ASSIGN_OR_RETURN(const ArrowFiles files,
                     ArrowFiles::Open(library_, {path}));
    return files.Convert(columns, {.skip_corrupt = skip_corrupt});
  }

  ArrowLibrary library_;
  ArrowLibrary real_;
  std::string copy_;
};

TEST_F(ArrowRecordsTest, NoMemoryIsNoDamageThatMaySkip) {
  library_.next = &NextLacksMemory;
  for (const bool skip_corrupt : {false, true}) {
    calls_before = 1;
    EXPECT_THAT(Convert(copy_, {"age"}, skip_corrupt).status(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("records.parquet: a bad page")));
  }
}

#ifndef PARASOL_SANITIZER
// Ends with 0 if a file can't be read for want of memory, and says so.
int ReadWithoutMemory(const ArrowFiles& files) {
  // What is there now, and too little for 16 MiB of images.
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = static_cast<rlim_t>(pages) * sysconf(_SC_PAGESIZE);
  const rlimit limit = {bytes + (8 << 20), bytes + (8 << 20)};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
  const absl::Status status =
      files.Convert({"image"}, {.skip_corrupt = true}).status();
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return absl::IsResourceExhausted(status) ? 0 : 1;
}

TEST_F(ArrowRecordsTest, AProcessThatLacksMemorySkipsNothing) {
  ASSERT_OK_AND_ASSIGN(
      const ArrowFiles files,
      ArrowFiles::Open(library_, {TestData("images.parquet")}));
  EXPECT_EXIT(std::_Exit(ReadWithoutMemory(files)),
              ::testing::ExitedWithCode(0), "images.parquet: ");
}
#endif

TEST_F(ArrowRecordsTest, AFileThatChangesIsNoDamageThatMaySkip) {
  library_.start = &FileChangesBeforeAStart;
  calls_before = 1;
  EXPECT_THAT(Convert(copy_, {"age"}).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("records.parquet at byte "),
                             HasSubstr("the file has changed"))));
}

TEST_F(ArrowRecordsTest, AFileThatChangesAsDamageIsLookedForIsNamed) {
  library_.next = &NextIsDamagedAndTheFileChanges;
  for (const bool skip_corrupt : {false, true}) {
    EXPECT_THAT(Convert(copy_, {"age"}, skip_corrupt).status(),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("records.parquet at byte "),
                               HasSubstr("the file has changed"),
                               Not(HasSubstr("column")))));
    SetUp();
    library_.next = &NextIsDamagedAndTheFileChanges;
  }
}

TEST_F(ArrowRecordsTest, TheRowsThatAreLostAreSaid) {
  library_.next = &NextIsDamaged;
  calls_before = 2;  // the first group's rows, and its end
  ASSERT_OK_AND_ASSIGN(const ArrowRecords all, Convert(copy_, {"age", "user"}));
  ASSERT_THAT(all.damaged, SizeIs(2));
  EXPECT_THAT(
      all.damaged.begin()->second,
      AllOf(HasSubstr("row group 1: "), EndsWith("; rows 0 to 15 are lost")));
  EXPECT_THAT(all.damaged.rbegin()->second, EndsWith("; rows 0 to 7 are lost"));
  calls_before = 0;
  ASSERT_OK_AND_ASSIGN(const ArrowRecords batches,
                       Convert(TestData("plain.arrow"), {"age"}));
  EXPECT_THAT(batches.damaged.begin()->second,
              EndsWith("; its rows from 0 on are lost"));
}

TEST_F(ArrowRecordsTest, ATextThatIsNoUtf8IsReadOfBothFormats) {
  for (const std::string name : {"latin1.arrow", "latin1.parquet"}) {
    ASSERT_OK_AND_ASSIGN(
        const ArrowRecords all,
        Convert(TestData(name), {"city"}, /*skip_corrupt=*/false));
    EXPECT_EQ(all.records.size(), 2);
  }
}

TEST_F(ArrowRecordsTest, OffsetsAndIndicesOfAFileThatPointOutsideAreNamed) {
  EXPECT_THAT(Convert(TestData("bad_offset.arrow"), {"city"}, false).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("column \"city\": "),
                             HasSubstr("an offset of a text points to"))));
  EXPECT_THAT(Convert(TestData("bad_index.arrow"), {"city"}, false).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("an index of a dictionary points to")));
  ASSERT_OK_AND_ASSIGN(const ArrowRecords some,
                       Convert(TestData("bad_index.arrow"), {"city"}));
  EXPECT_EQ(some.records.size(), 3);
  EXPECT_THAT(some.damaged.begin()->second,
              EndsWith("; its rows from 2 on are lost"));
}

TEST_F(ArrowRecordsTest, LargeRowsAreFewAtATime) {
  ASSERT_OK_AND_ASSIGN(const StoredFile stored,
                       StoredFile::Open(TestData("images.parquet"), true));
  ASSERT_OK_AND_ASSIGN(ArrowFile file, ArrowFile::Open(library_, stored));
  std::vector<int64_t> rows;
  const auto read = [&](const std::vector<size_t>& columns) {
    rows.clear();
    return file.ReadGroup(
        0, columns, [&](int64_t count, const std::vector<const ArrowArray*>&) {
          rows.push_back(count);
          return absl::OkStatus();
        });
  };
  ASSERT_OK(read({0, 1}));
  EXPECT_THAT(rows, SizeIs(2));
  EXPECT_THAT(rows, Each(AllOf(Gt(100), Le(200))));
  // The next group, or other columns of it, have a size of their own.
  ASSERT_OK(read({0}));
  EXPECT_THAT(rows, ElementsAre(300));
}

TEST_F(ArrowRecordsTest, CommonColumnsAreInAllFilesWithOneType) {
  ASSERT_OK_AND_ASSIGN(const ArrowFiles files,
                       ArrowFiles::Open(library_, {TestData("day_1.parquet"),
                                                   TestData("day_2.parquet")}));
  ASSERT_OK_AND_ASSIGN(std::vector<std::string> names, files.CommonColumns());
  EXPECT_THAT(names, ElementsAre("x", "y"));
  ASSERT_OK_AND_ASSIGN(const ArrowFiles types,
                       ArrowFiles::Open(library_, {TestData("day_9.parquet"),
                                                   TestData("day_1.parquet")}));
  ASSERT_OK_AND_ASSIGN(names, types.CommonColumns());
  EXPECT_THAT(names, ElementsAre("x", "y"));
  ASSERT_OK_AND_ASSIGN(const ArrowFiles one,
                       ArrowFiles::Open(library_, {TestData("day_9.parquet")}));
  ASSERT_OK_AND_ASSIGN(names, one.CommonColumns());
  EXPECT_THAT(names, ElementsAre("x", "y", "extra"));
}

}  // namespace
}  // namespace parasol
