#include "storage/sst_footer.h"

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"
#include "storage/checked_file.h"
#include "storage/testing/checkpoint_fixture.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr size_t kFooterBytes = 53;

class SstFooterTest : public CheckpointFixture {
 protected:
  SstFooterTest()
      : file_(*WriteShard(root(), "0.sst", {{"a", 0, 0, 1, {1, 2, 3}}})),
        bytes_(MustRead(root() + "/0.sst")) {}

  absl::Status Check(const std::string& bytes) {
    const std::string path = root() + "/0.sst";
    std::ofstream(path, std::ios::binary) << bytes;
    auto file = CheckedFile::Open(path, file_);
    if (!file.ok()) return file.status();
    return CheckFooter(**file);
  }

  const durable::CheckpointFile file_;
  const std::string bytes_;
};

// RocksDB would then believe changed blocks.
TEST_F(SstFooterTest, ChecksumsCantBeTurnedOff) {
  EXPECT_OK(Check(bytes_));
  for (const int kind : {0, 5, 127, 255}) {
    std::string bytes = bytes_;
    bytes[bytes.size() - kFooterBytes] = static_cast<char>(kind);
    EXPECT_THAT(Check(bytes),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("0.sst: does not end as an SST file does")))
        << kind;
  }
}

// RocksDB would end the process.
TEST_F(SstFooterTest, PropertiesEndAsABlockDoes) {
  const size_t metaindex =
      static_cast<uint8_t>(bytes_[bytes_.size() - 52]) +
      128 * static_cast<uint8_t>(bytes_[bytes_.size() - 51]) - 128;
  for (const size_t place : {metaindex - 6, metaindex - 7}) {
    std::string bytes = bytes_;
    bytes[place] = '\x80';
    EXPECT_THAT(Check(bytes), StatusIs(absl::StatusCode::kDataLoss)) << place;
  }
}

}  // namespace
}  // namespace parasol
