#include "cluster/checkpoint/model/row_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/row_hash.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/row_map.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr float kMissing = -1;

using Rows = std::map<uint64_t, std::vector<float>>;

// Rows of `width` values that name their id and `version`.
void AddTo(Rows& rows, uint64_t id, size_t width, float version) {
  std::vector<float>& row = rows[id];
  row.resize(width);
  for (size_t i = 0; i < width; ++i) {
    row[i] = version + static_cast<float>(id % 1000) + .5f * (i % 7);
  }
}

absl::Status AddRun(const Rows& rows, size_t width, RowFileWriter& writer) {
  RowMap map(width);
  for (const auto& [id, row] : rows) map.Set(id, row.data());
  return writer.AddRun(map.Sorted());
}

// Reads rows, with kMissing for what is not there.
absl::StatusOr<std::vector<float>> ReadFrom(RowFile& file,
                                            const std::vector<uint64_t>& ids,
                                            size_t width) {
  std::vector<float> values(ids.size() * width);
  const absl::Status status = file.Read(
      ids, absl::MakeSpan(values),
      [&](uint64_t, float* row) { std::fill_n(row, width, kMissing); });
  if (!status.ok()) return status;
  return values;
}

std::string EmptyDirectory() {
  const std::string path = absl::StrCat(
      testing::TempDir(), "/rows_",
      testing::UnitTest::GetInstance()->current_test_info()->name());
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return std::filesystem::canonical(path).string();
}

// The descriptors of this process whose files were in `directory`.
std::vector<int> OpenFilesOf(const std::string& directory) {
  std::vector<int> files;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target =
        std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with(directory)) {
      files.push_back(std::stoi(entry.path().filename().string()));
    }
  }
  return files;
}

TEST(RowFileTest, RowsOfAllRunsAreFoundAndThoseOfLaterRunsCount) {
  std::mt19937_64 random(1);
  // Widths with many rows in a block, with one, and with a row beyond a block.
  for (const size_t width : {1, 7, 16, 600, 5000}) {
    SCOPED_TRACE(width);
    const std::string directory = EmptyDirectory();
    ASSERT_OK_AND_ASSIGN(auto writer, RowFileWriter::Create(directory, width));
    Rows all;
    const size_t rows_per_run = width > 100 ? 40 : 3000;
    for (const int run : {0, 1, 2}) {
      Rows rows;
      for (size_t i = 0; i < rows_per_run; ++i) {
        AddTo(rows, random() % (2 * rows_per_run), width, 10000 * run);
      }
      // Ids at both ends.
      AddTo(rows, 0, width, 10000 * run);
      AddTo(rows, UINT64_MAX, width, 10000 * run);
      ASSERT_OK(AddRun(rows, width, *writer));
      for (const auto& [id, row] : rows) all[id] = row;
    }
    ASSERT_OK_AND_ASSIGN(const auto file, writer->Finish());
    writer = nullptr;
    EXPECT_EQ(file->rows(), all.size());
    EXPECT_GE(file->file_bytes(), all.size() * (8 + 4 * width));
    EXPECT_TRUE(std::filesystem::is_empty(directory));
    std::vector<uint64_t> ids;
    for (size_t id = 0; id < 2 * rows_per_run + 50; ++id) ids.push_back(id);
    ids.push_back(UINT64_MAX);
    ids.push_back(UINT64_MAX - 1);
    ids.push_back(3);  // once more
    std::shuffle(ids.begin(), ids.end(), random);
    ASSERT_OK_AND_ASSIGN(const std::vector<float> values,
                         ReadFrom(*file, ids, width));
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto row = all.find(ids[i]);
      const std::vector<float> want =
          row == all.end() ? std::vector<float>(width, kMissing) : row->second;
      ASSERT_TRUE(std::equal(want.begin(), want.end(), &values[i * width]))
          << ids[i];
    }
  }
}

TEST(RowFileTest, AFileHasNoRowsOrOneOrAFullBlock) {
  constexpr size_t kWidth = 16;
  const size_t full = RowBlockFormat(kWidth).rows_per_block;
  for (const size_t rows : {size_t{0}, size_t{1}, full - 1, full, full + 1}) {
    for (const size_t runs : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(rows, " rows in ", runs, " runs"));
      ASSERT_OK_AND_ASSIGN(const auto writer,
                           RowFileWriter::Create(EmptyDirectory(), kWidth));
      Rows all;
      for (size_t id = 0; id < rows; ++id) AddTo(all, id, kWidth, 1);
      for (size_t run = 0; run < runs; ++run) {
        ASSERT_OK(AddRun(all, kWidth, *writer));
      }
      ASSERT_OK_AND_ASSIGN(const auto file, writer->Finish());
      EXPECT_EQ(file->rows(), rows);
      std::vector<uint64_t> ids;
      for (size_t id = 0; id < rows + 2; ++id) ids.push_back(id);
      ASSERT_OK_AND_ASSIGN(const std::vector<float> values,
                           ReadFrom(*file, ids, kWidth));
      for (size_t id = 0; id < rows; ++id) {
        EXPECT_EQ(values[id * kWidth], all[id][0]);
      }
      EXPECT_EQ(values[rows * kWidth], kMissing);
    }
  }
}

TEST(RowFileTest, RowsThatAreNotInThePageCacheComeFromTheDisk) {
  constexpr size_t kWidth = 16;
  const std::string directory = EmptyDirectory();
  ASSERT_OK_AND_ASSIGN(auto writer, RowFileWriter::Create(directory, kWidth));
  Rows rows;
  for (uint64_t id = 0; id < 20000; ++id) AddTo(rows, id, kWidth, 1);
  ASSERT_OK(AddRun(rows, kWidth, *writer));
  ASSERT_OK_AND_ASSIGN(const auto file, writer->Finish());
  writer = nullptr;
  const std::vector<int> files = OpenFilesOf(directory);
  ASSERT_EQ(files.size(), 1);
  ASSERT_EQ(fsync(files[0]), 0);
  ASSERT_EQ(posix_fadvise(files[0], 0, 0, POSIX_FADV_DONTNEED), 0);
  std::vector<uint64_t> ids;
  for (const auto& [id, row] : rows) ids.push_back(id);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> values,
                       ReadFrom(*file, ids, kWidth));
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(values[i * kWidth], rows[ids[i]][0]) << ids[i];
  }
}

TEST(RowFileTest, DamageOnTheDiskIsAnErrorOfThoseRowsAlone) {
  constexpr size_t kWidth = 16;
  const RowBlockFormat format(kWidth);
  const std::string directory = EmptyDirectory();
  ASSERT_OK_AND_ASSIGN(auto writer, RowFileWriter::Create(directory, kWidth));
  Rows rows;
  for (uint64_t id = 0; id < 2000; ++id) AddTo(rows, id, kWidth, 1);
  ASSERT_OK(AddRun(rows, kWidth, *writer));
  ASSERT_OK_AND_ASSIGN(const auto file, writer->Finish());
  writer = nullptr;
  const int disk = OpenFilesOf(directory)[0];
  // The order of the rows in the file.
  std::vector<uint64_t> ids;
  for (const auto& [id, row] : rows) ids.push_back(id);
  std::sort(ids.begin(), ids.end(),
            [](uint64_t a, uint64_t b) { return RowHash(a) < RowHash(b); });
  const uint64_t first = ids[0];
  const uint64_t second = ids[format.rows_per_block];
  const uint64_t third = ids[2 * format.rows_per_block];
  std::vector<char> block(format.block_bytes);
  const auto read_block = [&](size_t b) {
    ASSERT_EQ(pread(disk, block.data(), block.size(), b * block.size()),
              block.size());
  };
  const auto write_block = [&](size_t b) {
    ASSERT_EQ(pwrite(disk, block.data(), block.size(), b * block.size()),
              block.size());
  };
  const auto is_damage =
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(StartsWith(directory), HasSubstr("--table_dir")));
  // A bit of a value.
  read_block(1);
  block[format.record_bytes - 1] ^= 1;
  write_block(1);
  EXPECT_THAT(ReadFrom(*file, {first, second}, kWidth), is_damage);
  EXPECT_OK(ReadFrom(*file, {first, third}, kWidth));
  // A whole block in another's place.
  read_block(0);
  write_block(1);
  EXPECT_THAT(ReadFrom(*file, {second}, kWidth), is_damage);
  // The end is not there: no SIGBUS.
  ASSERT_EQ(ftruncate(disk, format.block_bytes + 5), 0);
  EXPECT_THAT(ReadFrom(*file, {third}, kWidth), is_damage);
  EXPECT_OK(ReadFrom(*file, {first}, kWidth));
}

TEST(RowFileTest, ADirectoryThatCanNotBeUsedIsNamed) {
  EXPECT_THAT(
      RowFileWriter::Create("/nowhere/at/all", 2),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/at/all")));
}

TEST(RowFileTest, AFullDiskIsAnError) {
  constexpr size_t kWidth = 16;
  ASSERT_OK_AND_ASSIGN(const auto writer,
                       RowFileWriter::Create(EmptyDirectory(), kWidth));
  Rows rows;
  for (uint64_t id = 0; id < 20000; ++id) AddTo(rows, id, kWidth, 1);
  // The limit on files stands in for the disk's.
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 100'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status full = AddRun(rows, kWidth, *writer);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(full.ok());
  EXPECT_THAT(full.message(), HasSubstr("can't write rows to"));
}

}  // namespace
}  // namespace parasol
