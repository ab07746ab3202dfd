#include "ml/input/record/record_blocks.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/record/fixed_format.h"
#include "ml/input/record/record_reader.h"
#include "ml/input/record/records.h"
#include "ml/input/testing/input_files.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Lines; "#" begins no record, "!" a broken one.
class Lines final : public RecordFormat {
 public:
  absl::StatusOr<std::optional<size_t>> Begin(const std::string&,
                                              const FilePart&) override {
    return std::optional<size_t>(0);
  }
  FoundRecord Find(const FilePart& part, size_t at) const override {
    const absl::string_view rest = part.From(at);
    size_t size = rest.find('\n');
    if (size == absl::string_view::npos) {
      if (!part.HasEnd()) return {.kind = FoundRecord::Kind::kCutOff};
      size = rest.size();
    }
    FoundRecord found = {.kind = FoundRecord::Kind::kWhole,
                         .offset = at,
                         .length = size,
                         .next = std::min(at + size + 1, part.file_bytes)};
    if (rest.front() == '#') found.kind = FoundRecord::Kind::kNone;
    if (rest.front() == '!') {
      found.kind = FoundRecord::Kind::kBroken;
      found.what = "an exclamation";
    }
    return found;
  }
};

Records Opened(std::shared_ptr<RecordFormat> format,
               const std::vector<std::string>& files, const SetMemory& memory) {
  Records records(Records::Content::kText, std::move(format), memory);
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string path = WriteTestFile(absl::StrCat("blocks", i), files[i]);
    absl::StatusOr<StoredFile> file = StoredFile::Open(path, true);
    EXPECT_OK(file.status());
    EXPECT_OK(records.AddStored(*std::move(file)));
  }
  return records;
}

TEST(RecordBlocksTest, RecordsAreNumberedThroughAllFiles) {
  const Records records =
      Opened(std::make_shared<Lines>(),
             {"#\n#\none\ntwo", "", "# only this", "!three\n#\nfour\n"},
             {.block_bytes = 4, .cache_bytes = 1});
  EXPECT_THAT(records.file_starts(), ElementsAre(0, 2, 2, 2, 4));
  RecordReader reader(records);
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_THAT(reader.Read(3), IsOkAndHolds("four"));
    EXPECT_THAT(reader.Read(0), IsOkAndHolds("one"));
    EXPECT_THAT(reader.Read(1), IsOkAndHolds("two"));
    EXPECT_THAT(reader.Read(2),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("blocks3 line 1 at byte 0: an excl")));
  }
  EXPECT_THAT(reader.Corrupt(1, 2, "x").message(),
              HasSubstr("blocks0 line 4 at byte 10: x"));
  EXPECT_THAT(records.CheckAllWhole().message(),
              HasSubstr("blocks3 line 1 at byte 0: an exclamation"));
}

// Each block is read once if the cache has room for what a shuffle buffer's
// records are in, and a reader in order reads each once with any cache.
TEST(RecordBlocksTest, BlocksAreReadOnceWhereTheyFit) {
  std::string file;
  std::vector<int64_t> order;
  for (int i = 0; i < 20000; ++i) {
    absl::StrAppend(&file, "line ", i, "\n");
    order.push_back(i);
  }
  constexpr int64_t kBlocks = 210;
  for (const size_t cache_bytes : {size_t{1}, size_t{1} << 20}) {
    const Records records =
        Opened(std::make_shared<Lines>(), {file},
               {.block_bytes = 1000, .cache_bytes = cache_bytes});
    RecordReader reader(records);
    for (const int64_t i : order) {
      ASSERT_THAT(reader.Read(i), IsOkAndHolds(absl::StrCat("line ", i)));
    }
    EXPECT_NEAR(records.blocks()->blocks_read(), kBlocks, 2);
  }
  std::mt19937 random(1);
  std::shuffle(order.begin(), order.end(), random);
  const Records records =
      Opened(std::make_shared<Lines>(), {file},
             {.block_bytes = 1000, .cache_bytes = size_t{1} << 20});
  RecordReader reader(records);
  for (size_t i = 0; i < order.size(); ++i) {
    if (i + 4 < order.size()) reader.Prefetch(order[i + 4]);
    ASSERT_THAT(reader.Read(order[i]),
                IsOkAndHolds(absl::StrCat("line ", order[i])));
  }
  EXPECT_NEAR(records.blocks()->blocks_read(), kBlocks, 2);
}

TEST(RecordBlocksTest, ThreadsReadABlockOnceTogether) {
  std::string file;
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&file, "line ", i, "\n");
  const Records records =
      Opened(std::make_shared<Lines>(), {file},
             {.block_bytes = 500, .cache_bytes = size_t{1} << 20});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&records, &wrong] {
      RecordReader reader(records);
      for (int i = 0; i < 5000; ++i) {
        if (*reader.Read(i) != absl::StrCat("line ", i)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_NEAR(records.blocks()->blocks_read(), file.size() / 505.0, 4);
}

TEST(RecordBlocksTest, ThreadsShareACacheThatIsTooSmall) {
  std::string file;
  for (int i = 0; i < 2000; ++i) absl::StrAppend(&file, "line ", i, "\n");
  const Records records = Opened(std::make_shared<Lines>(), {file},
                                 {.block_bytes = 50, .cache_bytes = 200});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&records, &wrong, thread] {
      RecordReader reader(records);
      std::mt19937 random(thread);
      for (int i = 0; i < 5000; ++i) {
        const int record = static_cast<int>(random() % 2000);
        if (*reader.Read(record) != absl::StrCat("line ", record)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Memory follows the shuffle buffer, up to what a set in memory may have.
TEST(RecordBlocksTest, TheCacheHasRoomForTheShuffleBuffer) {
  const std::string file(100000, 'x');
  const struct {
    SetMemory memory;
    int64_t want;
  } cases[] = {
      {{.whole = 0, .block_bytes = 1000, .cache_bytes = 5000, .shuffled = 200},
       1000},
      {{.whole = 150000,
        .block_bytes = 1000,
        .cache_bytes = 5000,
        .shuffled = 0},
       1000},
      {{.whole = 150000,
        .block_bytes = 1000,
        .cache_bytes = 5000,
        .shuffled = 200},
       100},
  };
  for (const auto& c : cases) {
    const Records records =
        Opened(std::make_shared<FixedFormat>(100), {file}, c.memory);
    ASSERT_EQ(records.size(), 1000);
    RecordReader reader(records);
    // Ten records of each block, in ten turns.
    for (int i = 0; i < 1000; ++i) {
      ASSERT_OK(reader.Read(i % 100 * 10 + i / 100).status());
    }
    EXPECT_NEAR(records.blocks()->blocks_read(), c.want, 60)
        << c.memory.shuffled;
  }
}

// Overwrites a file with as many bytes, so that its time of change stays.
void Overwrite(const std::string& path, const std::string& bytes) {
  struct stat about;
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  ASSERT_EQ(about.st_size, static_cast<off_t>(bytes.size()));
  std::ofstream(path, std::ios::binary) << bytes;
  const timespec times[] = {about.st_atim, about.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

// What the system says of the file is what it was.
TEST(RecordBlocksTest, OtherRecordsInAFileOfTheSameSizeAreNoticed) {
  const std::string path = WriteTestFile("same", "one\ntwo\nsix\n");
  ASSERT_OK_AND_ASSIGN(StoredFile file, StoredFile::Open(path, true));
  Records records(Records::Content::kText, std::make_shared<Lines>(), {});
  ASSERT_OK(records.AddStored(std::move(file)));
  Overwrite(path, "one two\nsix\n");
  EXPECT_THAT(
      RecordReader(records).Read(1),
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(HasSubstr("other records"), HasSubstr("changed"))));
}

// As many records as there were, but the last one goes on behind the block.
TEST(RecordBlocksTest, RecordsThatCrossTheEndOfABlockAreNoticed) {
  std::string before;
  for (int i = 0; i < 20; ++i) before += "aa\nbb\n";
  std::string after = "a\nb\n";
  while (after.size() < before.size()) after += "cc\n";
  after.resize(before.size());
  const std::string path = WriteTestFile("crossed", before);
  for (const size_t block_bytes : {3, 6, 24}) {
    ASSERT_OK_AND_ASSIGN(StoredFile one, StoredFile::Open(path, true));
    Records records(Records::Content::kText, std::make_shared<Lines>(),
                    {.block_bytes = block_bytes});
    ASSERT_OK(records.AddStored(std::move(one)));
    Overwrite(path, after);
    EXPECT_THAT(
        RecordReader(records).Read(0),
        StatusIs(absl::StatusCode::kDataLoss,
                 AllOf(HasSubstr("crossed line 1 at byte 0: other records"),
                       HasSubstr("changed"))))
        << block_bytes;
    Overwrite(path, before);
  }
}

// A block read piece by piece has memory for more than its bytes: what the
// cache counts.
TEST(RecordBlocksTest, ABlockCountsAllOfItsMemory) {
  const std::string file = std::string(5000, 'x') + "\nshort\n";
  const Records records =
      Opened(std::make_shared<Lines>(), {file}, {.block_bytes = 1000});
  ASSERT_OK_AND_ASSIGN(const auto block, records.blocks()->BlockOf(0));
  EXPECT_EQ(block->bytes.size(), 5001);
  EXPECT_GE(block->allocated, 5001);
  EXPECT_EQ(block->memory_bytes(),
            block->allocated + sizeof(RecordBlock::Place));
}

}  // namespace
}  // namespace parasol
