#include "ml/input/file/file_set.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/testing/no_descriptors.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

template <typename... Paths>
auto HasPaths(const Paths&... paths) {
  return Field(&FoundFiles::paths, ElementsAre(paths...));
}

class FileSetTest : public testing::Test {
 protected:
  FileSetTest() : directory_(testing::TempDir() + "/set [a*]") {
    fs::create_directories(directory_ + "/sub");
    for (const char* name : {"b.txt", "a.txt", "c.csv", "sub/d.txt", "[x]"}) {
      std::ofstream(directory_ + "/" + name) << name;
    }
  }

  std::string Path(const std::string& name) const {
    return directory_ + "/" + name;
  }

  const std::string directory_;
};

TEST_F(FileSetTest, AGlobsFilesComeInTheOrderOfTheirNames) {
  EXPECT_THAT(FindFiles(directory_, {"*.txt"}, "f"),
              IsOkAndHolds(HasPaths(Path("a.txt"), Path("b.txt"))));
  EXPECT_THAT(
      FindFiles(directory_, {"[bc].*", "a.???"}, "f"),
      IsOkAndHolds(HasPaths(Path("b.txt"), Path("c.csv"), Path("a.txt"))));
  EXPECT_THAT(FindFiles(directory_, {"*/d.txt"}, "f"),
              IsOkAndHolds(HasPaths(Path("sub/d.txt"))));
}

TEST_F(FileSetTest, WhatExistsUnderThePatternsNameIsThatFile) {
  EXPECT_THAT(FindFiles(directory_, {"[x]"}, "f"),
              IsOkAndHolds(HasPaths(Path("[x]"))));
}

TEST_F(FileSetTest, AGrowingSetsFolderMustBeThereItsFilesNeedNot) {
  EXPECT_THAT(NamesOfGrowingSet(directory_, {"sub/*.txt", "*.none", "z.csv"}),
              IsOkAndHolds(ElementsAre("sub/d.txt")));
  EXPECT_THAT(NamesOfGrowingSet(directory_, {"s?b/none/*.txt"}),
              IsOkAndHolds(testing::IsEmpty()));
  for (const char* pattern : {"gone/*.txt", "gone/a/*.txt", "sub/gone/*/b*",
                              "a.txt/*.csv", "gone/a.csv"}) {
    EXPECT_THAT(CheckFoldersOfGrowingSet(directory_, {"*.txt", pattern}),
                StatusIs(absl::StatusCode::kNotFound,
                         AllOf(HasSubstr("there is no folder"),
                               HasSubstr("--data_dir=" + directory_))))
        << pattern;
    EXPECT_THAT(NamesOfGrowingSet(directory_, {pattern}),
                StatusIs(absl::StatusCode::kNotFound));
  }
  EXPECT_THAT(CheckFoldersOfGrowingSet(Path("gone"), {"*.txt"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(Path("gone"))));
  EXPECT_OK(CheckFoldersOfGrowingSet("", {"/*.txt", "*.txt"}));
  EXPECT_THAT(CheckFoldersOfGrowingSet("s3://bucket", {"*.txt"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(FileSetTest, NothingFoundIsNamed) {
  for (const char* pattern : {"*.gone", "gone.txt", "[", "gone/*"}) {
    EXPECT_THAT(FindFiles(directory_, {"a.txt", pattern}, "f"),
                StatusIs(absl::StatusCode::kNotFound,
                         AllOf(HasSubstr("--data_dir=" + directory_),
                               HasSubstr(pattern))));
  }
  EXPECT_THAT(FindFiles(directory_, {}, "csv.file"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("csv.file is not set")));
}

// A part of the files would be taken for all of them, or for none.
TEST_F(FileSetTest, WhatCannotBeLookedAtIsNoneThatIsMissing) {
  {
    const NoDescriptors none;
    EXPECT_THAT(FindFiles(directory_, {"*.txt"}, "f"),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("*.txt"), HasSubstr(directory_),
                               HasSubstr("Too many open files"))));
  }
  fs::create_symlink("circle", Path("circle"));
  EXPECT_THAT(FindFiles(directory_, {"circle"}, "f").status().message(),
              AllOf(HasSubstr(Path("circle")), HasSubstr("symbolic links")));
  fs::remove(Path("circle"));
}

TEST_F(FileSetTest, AWildcardPassesOverAFolderThatMayNotBeLookedAt) {
  fs::create_symlink("circle", Path("circle"));
  EXPECT_THAT(FindFiles(directory_, {"*/of_it.txt"}, "f").status().message(),
              AllOf(HasSubstr(Path("circle")), HasSubstr("symbolic links")));
  fs::create_directory(Path("folder"));
  std::ofstream(Path("folder/of_it.txt")) << "x";
  EXPECT_THAT(FindFiles(directory_, {"*/of_it.txt"}, "f"),
              IsOkAndHolds(HasPaths(Path("folder/of_it.txt"))));
  fs::remove_all(Path("folder"));
  fs::remove(Path("circle"));
}

}  // namespace
}  // namespace parasol
