#include "storage/checked_file.h"

#include <errno.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"
#include "storage/shard_file.h"
#include "storage/testing/checkpoint_fixture.h"
#include "storage/testing/disk_faults.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

std::string SomeBytes(size_t count) {
  std::mt19937 random(7);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(ConcatCrc32cTest, IsTheCrcOfTheBytesTogether) {
  const std::string bytes = SomeBytes(70000);
  for (const size_t split : {0, 1, 2, 3, 255, 256, 65536, 69999, 70000}) {
    const absl::string_view all = bytes;
    EXPECT_EQ(ConcatCrc32c(Crc32cOf(all.substr(0, split)),
                           Crc32cOf(all.substr(split)), all.size() - split),
              Crc32cOf(bytes))
        << split;
  }
}

class CheckedFileTest : public testing::Test {
 protected:
  CheckedFileTest() {
    FailReadsOf("", 0);
    EXPECT_OK(WriteFileDurably(path_, bytes_));
    file_.set_bytes(bytes_.size());
    file_.set_crc32c(Crc32cOf(bytes_));
  }
  ~CheckedFileTest() override { FailReadsOf("", 0); }

  std::unique_ptr<CheckedFile> Open() {
    auto file = CheckedFile::Open(path_, file_);
    EXPECT_OK(file);
    return *std::move(file);
  }
  std::string Read(CheckedFile& file, uint64_t offset, size_t count) {
    std::string bytes(count, '\0');
    EXPECT_OK(file.Read(offset, count, bytes.data()));
    return bytes;
  }

  const std::string path_ = testing::TempDir() + "/checked_file_test";
  const std::string bytes_ = SomeBytes(3000);
  durable::CheckpointFile file_;
};

TEST_F(CheckedFileTest, IsVerifiedByReadingEachByteOnceInAnyOrder) {
  const auto file = Open();
  std::vector<uint64_t> offsets;
  for (uint64_t offset = 0; offset < bytes_.size(); offset += 100) {
    offsets.push_back(offset);
  }
  std::shuffle(offsets.begin(), offsets.end(), std::mt19937(1));
  for (const uint64_t offset : offsets) {
    EXPECT_EQ(Read(*file, offset, 100), bytes_.substr(offset, 100));
  }
  EXPECT_EQ(file->bytes_covered(), bytes_.size());
  EXPECT_OK(file->Verify());
  EXPECT_EQ(file->bytes_read(), bytes_.size());
}

TEST_F(CheckedFileTest, RangesThatOverlapCountOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto file = Open();
    std::vector<bool> seen(bytes_.size());
    for (int i = 0; i < 20; ++i) {
      const size_t offset = random() % bytes_.size();
      const size_t count = random() % (bytes_.size() - offset + 1);
      EXPECT_EQ(Read(*file, offset, count), bytes_.substr(offset, count));
      std::fill_n(seen.begin() + offset, count, true);
    }
    EXPECT_EQ(file->bytes_covered(), static_cast<uint64_t>(std::count(
                                         seen.begin(), seen.end(), true)));
    EXPECT_OK(file->Verify());
    EXPECT_EQ(file->bytes_covered(), bytes_.size());
  }
}

TEST_F(CheckedFileTest, AnAlteredByteIsDataLossWhereverItIs) {
  for (size_t i = 0; i < bytes_.size(); i += 37) {
    std::string altered = bytes_;
    altered[i] ^= 4;
    ASSERT_OK(WriteFileDurably(path_, altered));
    const auto file = Open();
    Read(*file, 1000, 500);
    EXPECT_THAT(file->Verify(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_)));
  }
}

TEST_F(CheckedFileTest, AnotherSizeIsDataLoss) {
  file_.set_bytes(2999);
  EXPECT_THAT(CheckedFile::Open(path_, file_).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("has 3000 bytes, should have 2999")));
}

TEST_F(CheckedFileTest, AFileThatShrinksIsDataLoss) {
  const auto file = Open();
  std::filesystem::resize_file(path_, 10);
  EXPECT_THAT(file->Verify(), StatusIs(absl::StatusCode::kDataLoss,
                                       HasSubstr("ends at byte 10")));
}

TEST_F(CheckedFileTest, WhatCantBeReadNowIsNoDamage) {
  const auto file = Open();
  for (const int code : {EIO, ESTALE, EACCES}) {
    FailReadsOf(std::filesystem::canonical(path_), code);
    EXPECT_THAT(file->Verify(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(path_)));
  }
  FailReadsOf("", 0);
  EXPECT_OK(file->Verify());
}

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
