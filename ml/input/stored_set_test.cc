// Data sets that stay on the disk, beside the same ones in memory: every batch,
// error and count is the same.

#include <sys/resource.h>
#include <utime.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/mutated.h"
#include "ml/input/testing/read_all.h"
#include "ml/input/testing/sample_formats.h"
#include "ml/input/testing/tf_example_writer.h"
#include "storage/tensor_files/npy_header.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;

// Tiny, so that a set of some kilobytes has many blocks, and few of them fit.
constexpr SetMemory kOnDisk = {
    .whole = 0, .block_bytes = 100, .cache_bytes = 700};

void WriteFiles(const std::vector<std::string>& files) {
  for (int i = 0; i < 3; ++i) {
    std::filesystem::remove(absl::StrCat(testing::TempDir(), "/f", i));
  }
  for (size_t i = 0; i < files.size(); ++i) {
    WriteTestFile(absl::StrCat("f", i), files[i]);
  }
}

absl::StatusOr<std::unique_ptr<InputPipeline>> Open(const SampleFormat& format,
                                                    const std::string& settings,
                                                    InputOptions options) {
  options.data_dir = testing::TempDir();
  return InputPipeline::Open(FromText<job::Dataset>(absl::StrCat(
                                 "batch_size: 7 ", settings, format.dataset)),
                             *InputsFromText(format.model), options);
}

std::vector<std::string> ReadAs(const SampleFormat& format,
                                const std::string& settings,
                                const InputOptions& options,
                                int most_batches = 1000) {
  const auto pipeline = Open(format, settings, options);
  if (!pipeline.ok()) return {pipeline.status().ToString()};
  std::vector<std::string> all = ReadTexts(**pipeline, most_batches);
  all.push_back(absl::StrCat("of ", (*pipeline)->total_examples()));
  return all;
}

void ExpectTheSame(const SampleFormat& format, const std::string& settings,
                   InputOptions options, int most_batches = 1000,
                   size_t at_least = 0) {
  SCOPED_TRACE(settings);
  const auto in_memory = ReadAs(format, settings, options, most_batches);
  EXPECT_THAT(in_memory, SizeIs(Ge(at_least))) << in_memory.front();
  options.memory = kOnDisk;
  EXPECT_EQ(ReadAs(format, settings, options, most_batches), in_memory);
}

TEST(StoredSetTest, BatchesAreTheSameAsInMemory) {
  for (const SampleFormat& format : SampleFormats()) {
    SCOPED_TRACE(format.name);
    WriteFiles(format.files);
    const auto expect = [&](const std::string& settings, InputOptions options,
                            int most_batches) {
      constexpr size_t kAtLeast = 4;
      ExpectTheSame(format, settings, options, most_batches, kAtLeast);
    };
    expect("", {}, 1000);
    expect("shuffle_buffer: 20 ", {.seed = 3}, 1000);
    expect("shuffle_buffer: 1000 decode_threads: 4 ", {.seed = 4}, 1000);
    expect("shuffle_buffer: 50 decode_threads: 3 ", {.seed = 5, .repeat = true},
           200);
    expect("shuffle_buffer: 9 split { from: 0.3 to: 0.8 } ",
           {.seed = 6, .repeat = true, .first_batch = 11}, 60);
    expect("shuffle_buffer: 9 auto_shard: DATA ",
           {.seed = 7, .shard = 1, .num_shards = 3}, 1000);
  }
}

TEST(StoredSetTest, BatchesByNumberAreTheSameAsInMemory) {
  for (const SampleFormat& format : SampleFormats()) {
    SCOPED_TRACE(format.name);
    WriteFiles(format.files);
    std::vector<std::vector<std::string>> results;
    for (const SetMemory& memory : {SetMemory(), kOnDisk}) {
      ASSERT_OK_AND_ASSIGN(const auto first, Open(format, "shuffle_buffer: 30 ",
                                                  {.seed = 2,
                                                   .num_shards = 2,
                                                   .by_number = true,
                                                   .memory = memory}));
      // Another reader of the same set.
      ASSERT_OK_AND_ASSIGN(
          const auto pipeline,
          first->OpenAgain({.seed = 2, .num_shards = 2, .by_number = true}));
      std::vector<int64_t> numbers = {9, 2, 3, 4, 40, 1};
      pipeline->SetNext(numbers);
      results.push_back(ReadTexts(*pipeline, static_cast<int>(numbers.size())));
    }
    EXPECT_THAT(results[0], SizeIs(7));
    EXPECT_EQ(results[0], results[1]);
  }
}

absl::Status OpenWithoutTmpdir(const SampleFormat& format,
                               const SetMemory& memory) {
  const char* const before = std::getenv("TMPDIR");
  const std::string old = before == nullptr ? "" : before;
  setenv("TMPDIR", "/no/such/folder", 1);
  const auto pipeline = Open(format, "", {.memory = memory});
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", old.c_str(), 1);
  return pipeline.status();
}

TEST(StoredSetTest, FilesOfASetThatIsSmallMayGo) {
  const SampleFormat format = CsvSample();
  WriteFiles(format.files);
  const auto before = ReadAs(format, "", {});
  ASSERT_OK_AND_ASSIGN(const auto pipeline, Open(format, "", {}));
  WriteFiles({"", "", ""});
  auto read = ReadTexts(*pipeline, 1000);
  EXPECT_THAT(read.back(), HasSubstr("skipped: 0"));
  read.push_back(before.back());
  EXPECT_EQ(read, before);
}

// Packed files that turn out to be too large are on the disk after all.
TEST(StoredSetTest, PackedFilesCountUnpacked) {
  SampleFormat format = CsvSample();
  for (std::string& file : format.files) file = Gzip(file);
  WriteFiles(format.files);
  const auto in_memory = ReadAs(format, "", {});
  EXPECT_LT(format.files[0].size() + format.files[1].size(), 5000);
  EXPECT_EQ(ReadAs(format, "", {.memory = {.whole = 5000}}), in_memory);
  // They are unpacked there, and not in memory.
  EXPECT_THAT(OpenWithoutTmpdir(format, {.whole = 5000}).message(),
              HasSubstr("TMPDIR"));
  EXPECT_OK(OpenWithoutTmpdir(format, {.whole = 1 << 20}));
}

TEST(StoredSetTest, FilesThatWentAreReadToTheEnd) {
  const SampleFormat format = CsvSample();
  WriteFiles(format.files);
  const auto in_memory = ReadAs(format, "", {});
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Open(format, "", {.memory = kOnDisk}));
  for (const char* name : {"/f0", "/f1", "/f2"}) {
    std::filesystem::remove(testing::TempDir() + name);
  }
  auto read = ReadTexts(*pipeline, 1000);
  read.push_back(in_memory.back());
  EXPECT_EQ(read, in_memory);
}

// What became of a file is an error that names it, and never another example.
TEST(StoredSetTest, ChangedFilesAreNamed) {
  const SampleFormat format = CsvSample();
  const std::string path = testing::TempDir() + "/f0";
  const std::string& bytes = format.files[0];
  std::string same_size = bytes;
  for (char& c : same_size) c = c == '5' ? '6' : c;
  const std::vector<std::string> changed = {bytes.substr(0, bytes.size() / 2),
                                            bytes + "1,x,1\n", same_size, ""};
  for (const std::string& other : changed) {
    WriteFiles(format.files);
    ASSERT_OK_AND_ASSIGN(const auto pipeline,
                         Open(format, "", {.memory = kOnDisk}));
    // In place; and at another time, whatever the clock of the file system.
    std::ofstream(path, std::ios::binary) << other;
    const utimbuf times = {.actime = 1, .modtime = 1};
    ASSERT_EQ(utime(path.c_str(), &times), 0);
    EXPECT_THAT(pipeline->Next(), StatusIs(absl::StatusCode::kDataLoss,
                                           AllOf(HasSubstr("/f0 at byte "),
                                                 HasSubstr("has changed"))));
  }
}

// A hundred files of two records.
SampleFormat ManyFiles() {
  SampleFormat format = RatingsSample();
  format.files.clear();
  for (int i = 0; i < 10; ++i) {
    for (int j = 0; j < 10; ++j) {
      WriteTestFile(absl::StrCat("many", i, j),
                    absl::StrCat(i, "::", j, "::1::1\n2::3::4::5\n"));
    }
  }
  format.dataset = "ratings { file: 'many*' }";
  return format;
}

bool AllowDescriptors(rlim_t count) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = count;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// A data set may have more files than the process may have descriptors.
TEST(StoredSetTest, FilesWithoutADescriptorAreOpenedAgain) {
  const SampleFormat format = ManyFiles();
  const auto in_memory = ReadAs(format, "", {});
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const absl::Cleanup restore = [&before] {
    setrlimit(RLIMIT_NOFILE, &before);
  };
  ASSERT_TRUE(AllowDescriptors(64));
  const auto on_disk = ReadAs(format, "", {.memory = kOnDisk});
  const auto pipeline = Open(format, "", {.memory = kOnDisk});
  // What is at the path now is another file, of the same bytes.
  std::filesystem::copy_file(testing::TempDir() + "/many98",
                             testing::TempDir() + "/other");
  std::filesystem::rename(testing::TempDir() + "/other",
                          testing::TempDir() + "/many98");
  ASSERT_OK(pipeline);
  const auto replaced = ReadTexts(**pipeline, 1000);
  EXPECT_EQ(on_disk, in_memory);
  EXPECT_THAT(absl::StrCat(replaced[replaced.size() - 2]),
              AllOf(HasSubstr("DATA_LOSS"), HasSubstr("/many98 at byte "),
                    HasSubstr("has changed")));
}

// What passes is no corrupt record: nothing is left out.
TEST(StoredSetTest, WithoutADescriptorAnotherTryMaySucceed) {
  const SampleFormat format = ManyFiles();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const absl::Cleanup restore = [&before] {
    setrlimit(RLIMIT_NOFILE, &before);
  };
  for (const char* settings : {"on_corrupt: STOP ", "on_corrupt: SKIP "}) {
    ASSERT_TRUE(AllowDescriptors(64));
    ASSERT_OK_AND_ASSIGN(const auto pipeline,
                         Open(format, settings, {.memory = kOnDisk}));
    const auto in_memory = ReadAs(format, settings, {});
    ASSERT_TRUE(AllowDescriptors(3));
    const auto read = ReadTexts(*pipeline, 1000);
    const auto again = pipeline->Next();
    ASSERT_TRUE(AllowDescriptors(64));
    EXPECT_THAT(again,
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("/many16 at byte 0: Too many open"),
                               HasSubstr("ulimit -n"))));
    EXPECT_EQ(read.back(), "skipped: 0");
    ASSERT_OK_AND_ASSIGN(const auto reopened, pipeline->OpenAgain({}));
    auto whole = ReadTexts(*reopened, 1000);
    whole.push_back(in_memory.back());
    EXPECT_EQ(whole, in_memory);
  }
}

TEST(StoredSetTest, NoRoomForUnpackedBytesIsNamed) {
  SampleFormat format = CsvSample();
  for (std::string& file : format.files) file = Gzip(file);
  WriteFiles(format.files);
  EXPECT_THAT(OpenWithoutTmpdir(format, kOnDisk).message(),
              HasSubstr("TMPDIR"));
}

TEST(StoredSetTest, EmptySetsAreRefusedAsInMemory) {
  for (const SampleFormat& format : SampleFormats()) {
    SCOPED_TRACE(format.name);
    SampleFormat empty = format;
    for (std::string& file : empty.files) file = "";
    WriteFiles(empty.files);
    ExpectTheSame(empty, "", {});
  }
}

// Bytes that this process has read of files so far.
int64_t BytesReadSoFar() {
  std::ifstream counts("/proc/self/io");
  std::string name;
  int64_t bytes = -1;
  counts >> name >> bytes;
  return name == "rchar:" ? bytes : -1;
}

// Reads an epoch, of at least so many batches, and returns how many bytes of
// files that took.
int64_t BytesOfAnEpoch(InputPipeline& pipeline, int64_t at_least) {
  const int64_t before = BytesReadSoFar();
  EXPECT_GE(before, 0);
  int64_t batches = 0;
  absl::StatusOr<const Batch*> batch = pipeline.Next();
  for (; batch.ok() && *batch != nullptr; batch = pipeline.Next()) ++batches;
  EXPECT_OK(batch.status());
  EXPECT_GE(batches, at_least);
  return BytesReadSoFar() - before;
}

TEST(StoredSetTest, AMillionTinyRecordsAreReadOnceAnEpoch) {
  std::string file;
  for (int i = 0; i < 1000000; ++i) file += i % 2 == 0 ? "0\n" : "1\n";
  SampleFormat format = LibsvmSample();
  format.files = {file};
  format.dataset = "libsvm { file: 'f?' }";
  WriteFiles({file, "", ""});
  format.model = "loss { binary_crossentropy {} } input { name: 'c' ids {} }";
  const std::string settings =
      "shuffle_buffer: 10000 decode_threads: 2 prefetch_batches: 4 ";
  const auto in_memory = ReadAs(format, settings, {}, 3000);
  EXPECT_EQ(ReadAs(format, settings, {.memory = {.whole = 0}}, 3000),
            in_memory);
  // To find the records took one more pass, which leaves some in the cache.
  const SetMemory memory = {.whole = 0, .cache_bytes = 4 << 20};
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Open(format, settings, {.memory = memory}));
  EXPECT_THAT(BytesOfAnEpoch(*pipeline, 142858),
              AllOf(Ge(file.size() / 2), Le(file.size() * 11 / 10)));
}

// The buffer's records lie among other replicas', or among ones that a split
// leaves out: the cache has room for them all.
TEST(StoredSetTest, ShardsAndSplitsReadABlockAboutOnce) {
  std::string file = "a,c,y\n";
  for (int i = 0; i < 16000; ++i) {
    absl::StrAppend(&file, i, ",", std::string(90, 'x'), ",1\n");
  }
  SampleFormat format = CsvSample();
  format.files = {file};
  format.dataset = "csv { file: 'f0' label { column: 'y' } }";
  WriteFiles(format.files);
  const SetMemory memory = {
      .whole = file.size() - 1, .block_bytes = 10000, .cache_bytes = 5000};
  const struct {
    std::string settings;
    InputOptions options;
  } cases[] = {
      {"auto_shard: DATA ", {.shard = 3, .num_shards = 16, .memory = memory}},
      {"split { from: 0.5 to: 0.5625 } ", {.memory = memory}},
  };
  for (const auto& c : cases) {
    ASSERT_OK_AND_ASSIGN(
        const auto pipeline,
        Open(format, c.settings + "shuffle_buffer: 100 ", c.options));
    EXPECT_THAT(BytesOfAnEpoch(*pipeline, 100),
                AllOf(Ge(file.size() * 9 / 10), Le(file.size() * 13 / 10)))
        << c.settings;
  }
}

TEST(StoredSetTest, DamagedFilesHaveTheSameErrorsAndCounts) {
  constexpr int kDamagedEach = 30;
  for (const SampleFormat& format : SampleFormats()) {
    // Of two faults of one file, either may be named.
    if (format.name == "idx.gz" || absl::StrContains(format.name, "np")) {
      continue;
    }
    SCOPED_TRACE(format.name);
    std::mt19937_64 random(7);
    for (int i = 0; i < kDamagedEach; ++i) {
      SCOPED_TRACE(i);
      SampleFormat damaged = format;
      std::string& file = damaged.files[random() % damaged.files.size()];
      file = Mutated(file, random);
      WriteFiles(damaged.files);
      ExpectTheSame(damaged,
                    i % 2 == 0 ? "on_corrupt: STOP " : "on_corrupt: SKIP ", {});
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace parasol
