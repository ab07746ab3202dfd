#include "storage/rocksdb_status.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/env.h"
#include "storage/testing/file_size_limit.h"

namespace parasol {
namespace {

TEST(RocksDbStatusTest, LastingErrorsOfTheFileSystemAreToldFromThoseThatPass) {
  const std::vector<std::pair<int, absl::StatusCode>> cases = {
      {ENOSPC, absl::StatusCode::kResourceExhausted},
      {EDQUOT, absl::StatusCode::kResourceExhausted},
      {EFBIG, absl::StatusCode::kResourceExhausted},
      {EMFILE, absl::StatusCode::kResourceExhausted},
      {EROFS, absl::StatusCode::kPermissionDenied},
      {EACCES, absl::StatusCode::kPermissionDenied},
      {EIO, absl::StatusCode::kUnavailable},
      {ESTALE, absl::StatusCode::kUnavailable}};
  for (const auto& [error, code] : cases) {
    const rocksdb::Status status = rocksdb::Status::IOError(
        "While appending to file: /a/b", std::strerror(error));
    EXPECT_THAT(FromRocksDbStatus(status, "/a/b"), StatusIs(code))
        << std::strerror(error);
  }
}

// What RocksDB itself says when a write is refused for a reason other than a
// full disk.
TEST(RocksDbStatusTest, AFileThatMayNotGrowIsNamedAsAFullDiskIs) {
  const std::string path = testing::TempDir() + "/too_large";
  std::unique_ptr<rocksdb::WritableFile> file;
  ASSERT_TRUE(rocksdb::Env::Default()
                  ->NewWritableFile(path, &file, rocksdb::EnvOptions())
                  .ok());
  FileSizeLimit limit(4096);
  rocksdb::Status status = file->Append(std::string(1 << 20, 'x'));
  if (status.ok()) status = file->Flush();
  limit.Lift();
  EXPECT_THAT(FromRocksDbStatus(status, path),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       testing::HasSubstr("too_large")));
}

}  // namespace
}  // namespace parasol
