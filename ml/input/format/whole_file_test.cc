#include "ml/input/format/whole_file.h"

#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/testing/input_files.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr size_t kGiB = size_t{1} << 30;

// Writes a file of zeros that take no room on the disk.
std::string WriteHoles(const std::string& name, size_t bytes) {
  const std::string path = WriteTestFile(name, "");
  EXPECT_EQ(truncate(path.c_str(), static_cast<off_t>(bytes)), 0);
  return path;
}

TEST(WholeFileTest, IsItsBytesPackedOrNot) {
  const std::string bytes(3000000, 'x');
  EXPECT_THAT(ReadWholeFile(WriteTestFile("plain", bytes)),
              IsOkAndHolds(bytes));
  EXPECT_THAT(ReadWholeFile(WriteTestFile("packed", Gzip(bytes))),
              IsOkAndHolds(bytes));
  EXPECT_THAT(ReadWholeFile(WriteTestFile("empty", "")), IsOkAndHolds(""));
}

TEST(WholeFileTest, MoreThanATebibyteIsNotEvenBegun) {
  EXPECT_THAT(ReadWholeFile(WriteHoles("huge", 2048 * kGiB)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("huge: more than 1099511627776 bytes")));
}

TEST(WholeFileTest, WithoutMemoryTheFileIsNamed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "its allocator ends the process";
#endif
  const std::string path = WriteHoles("large", 8 * kGiB);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit less = {.rlim_cur = 4 * kGiB, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &less), 0);
  const auto bytes = ReadWholeFile(path);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(bytes, StatusIs(absl::StatusCode::kResourceExhausted,
                              HasSubstr("large: no memory for its bytes")));
}

}  // namespace
}  // namespace parasol
