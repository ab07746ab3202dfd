#include "deploy/local/file_tail.h"

#include <fstream>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(FileTailTest, EndsWithTheFileAndBeginsWhereItIsTold) {
  const std::string path = testing::TempDir() + "/file_tail";
  std::ofstream(path) << "0123456789";
  EXPECT_EQ(FileEnd(path), 10);
  EXPECT_EQ(FileTail(path, 100), "0123456789");
  EXPECT_EQ(FileTail(path, 3), "789");
  EXPECT_EQ(FileTail(path, 5, 8), "89");
  EXPECT_EQ(FileTail(path, 5, 10), "");
  EXPECT_EQ(FileTail(path, 5, 11), "");
}

TEST(FileTailTest, MissingFileIsEmpty) {
  EXPECT_EQ(FileTail("/no/such/file", 10), "");
  EXPECT_EQ(FileEnd("/no/such/file"), 0);
}

}  // namespace
}  // namespace parasol
