#include "storage/checkpoint_reader.h"

#include <errno.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_manifest.h"
#include "storage/durable_file.h"
#include "storage/shard_writer.h"
#include "storage/testing/checkpoint_fixture.h"
#include "storage/testing/disk_faults.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 0, 1, 2, …: element i of the variable holds i.
std::vector<float> Ramp(int64_t first, size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), static_cast<float>(first));
  return values;
}

class CheckpointReaderTest : public CheckpointFixture {
 protected:
  // Adds a file with `entries` to the checkpoint in root().
  void AddShard(const std::string& name, const std::vector<Elements>& entries) {
    auto file = WriteShard(root(), name, entries);
    ASSERT_OK(file);
    *manifest_.add_file() = *file;
    ASSERT_OK(WriteManifest(root(), manifest_));
  }

  struct Batch {
    std::vector<uint64_t> ids;
    std::vector<float> rows;
    int64_t updates = 0;

    bool operator==(const Batch&) const = default;
  };

  // Adds a file with batches of one table.
  void AddRows(const std::string& name, const std::string& table,
               const std::vector<Batch>& batches) {
    ASSERT_OK_AND_ASSIGN(const auto writer,
                         ShardWriter::Create(root() + "/" + name));
    for (const Batch& batch : batches) {
      ASSERT_OK(writer->AddRows(
          table,
          {.updates = batch.updates, .ids = batch.ids, .rows = batch.rows}));
    }
    ASSERT_OK_AND_ASSIGN(*manifest_.add_file(), writer->Finish());
    ASSERT_OK(WriteManifest(root(), manifest_));
  }

  void AddTable(const std::string& name, uint32_t width, size_t slots) {
    durable::CheckpointTable* const table = manifest_.add_table();
    table->set_name(name);
    table->set_width(width);
    for (size_t s = 0; s < slots; ++s) table->add_slot("slot");
  }

  absl::StatusOr<std::vector<Batch>> ReadRows(const std::string& table) {
    ASSIGN_OR_RETURN(const auto reader, CheckpointReader::Open(root()));
    std::vector<Batch> batches;
    RETURN_IF_ERROR(reader->ReadRows(table, [&](const RowBatch& batch) {
      batches.push_back({{batch.ids.begin(), batch.ids.end()},
                         {batch.rows.begin(), batch.rows.end()},
                         batch.updates});
      return absl::OkStatus();
    }));
    RETURN_IF_ERROR(reader->Verify());
    return batches;
  }

  // The values, or what went wrong.
  absl::StatusOr<std::vector<float>> Read(const std::string& variable,
                                          int array, int64_t first,
                                          size_t count) {
    ASSIGN_OR_RETURN(const auto reader, CheckpointReader::Open(root()));
    std::vector<float> values(count, -1);
    RETURN_IF_ERROR(
        reader->ReadElements(variable, array, first, absl::MakeSpan(values))
            .status());
    RETURN_IF_ERROR(reader->Verify());
    return values;
  }

  void Rewrite(const std::string& name, const std::string& bytes) {
    std::ofstream(root() + "/" + name, std::ios::binary) << bytes;
  }

  durable::CheckpointManifest manifest_;
};

TEST_F(CheckpointReaderTest, ElementsOfAllShardsReadAsOneArray) {
  AddShard("0.sst", {{"a", 0, 0, 3, Ramp(0, 4)}, {"a", 0, 8, 9, Ramp(8, 4)}});
  AddShard("1.sst", {{"a", 0, 4, 7, Ramp(4, 4)}, {"a", 0, 12, 5, Ramp(12, 4)}});

  for (int64_t first = 0; first < 16; ++first) {
    for (size_t count = 0; first + count <= 16; ++count) {
      EXPECT_THAT(Read("a", 0, first, count), IsOkAndHolds(Ramp(first, count)))
          << first << " " << count;
    }
  }
}

TEST_F(CheckpointReaderTest, UpdatesAreTheLargestOfWhatWasRead) {
  AddShard("0.sst", {{"a", 0, 0, 3, Ramp(0, 4)}, {"a", 0, 4, 9, Ramp(4, 4)}});
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(root()));
  std::vector<float> values(4);

  EXPECT_THAT(reader->ReadElements("a", 0, 0, absl::MakeSpan(values)),
              IsOkAndHolds(3));
  EXPECT_THAT(reader->ReadElements("a", 0, 1, absl::MakeSpan(values)),
              IsOkAndHolds(9));
}

TEST_F(CheckpointReaderTest, AnEntryLargerThanTheLimitReadsAsItWasWritten) {
  AddShard("0.sst", {{"a", 2, 10, 1, Ramp(10, 200000)}});

  EXPECT_THAT(Read("a", 2, 10, 200000), IsOkAndHolds(Ramp(10, 200000)));
  EXPECT_THAT(Read("a", 2, 65540, 20), IsOkAndHolds(Ramp(65540, 20)));
}

TEST_F(CheckpointReaderTest, ElementsThatAreNotThereAreNotFound) {
  AddShard("0.sst", {{"a", 0, 4, 0, Ramp(4, 4)}, {"a", 0, 12, 0, Ramp(12, 4)}});

  struct Case {
    std::string name;
    std::string variable;
    int array;
    int64_t first;
    size_t count;
  };
  const Case cases[] = {
      {"another variable", "b", 0, 4, 1}, {"a prefix of it", "", 0, 4, 1},
      {"another array", "a", 1, 4, 1},    {"before the first", "a", 0, 3, 2},
      {"into the hole", "a", 0, 6, 3},    {"across the hole", "a", 0, 6, 8},
      {"in the hole", "a", 0, 9, 1},      {"behind the last", "a", 0, 15, 2}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(Read(c.variable, c.array, c.first, c.count),
                StatusIs(absl::StatusCode::kNotFound));
  }
}

TEST_F(CheckpointReaderTest, NamesThatArePrefixesOfEachOtherDontMix) {
  const std::string nul("a\0", 2);
  AddShard("0.sst", {{"a", 0, 0, 0, {1}},
                     {nul, 0, 0, 0, {2}},
                     {"a/b", 0, 0, 0, {3}},
                     {"aa", 0, 0, 0, {4}}});

  EXPECT_THAT(Read("a", 0, 0, 1), IsOkAndHolds(ElementsAre(1)));
  EXPECT_THAT(Read(nul, 0, 0, 1), IsOkAndHolds(ElementsAre(2)));
  EXPECT_THAT(Read("a/b", 0, 0, 1), IsOkAndHolds(ElementsAre(3)));
  EXPECT_THAT(Read("aa", 0, 0, 1), IsOkAndHolds(ElementsAre(4)));
}

TEST_F(CheckpointReaderTest, DedupIsGivenToTheSameShardingOnly) {
  ASSERT_OK_AND_ASSIGN(const auto writer,
                       ShardWriter::Create(root() + "/1.sst"));
  ASSERT_OK(writer->AddDedup(1, 2, {7, "seven"}));
  ASSERT_OK(writer->AddDedup(1, 2, {uint64_t{1} << 63, ""}));
  ASSERT_OK_AND_ASSIGN(*manifest_.add_file(), writer->Finish());
  AddShard("0.sst", {});
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(root()));

  ASSERT_OK_AND_ASSIGN(const std::vector<DedupEntry> entries,
                       reader->ReadDedup(1, 2));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].worker_incarnation, 7u);
  EXPECT_EQ(entries[0].window, "seven");
  EXPECT_EQ(entries[1].worker_incarnation, uint64_t{1} << 63);
  EXPECT_THAT(reader->ReadDedup(0, 2), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(reader->ReadDedup(1, 3), IsOkAndHolds(IsEmpty()));
}

TEST_F(CheckpointReaderTest, RowsOfAllShardsAreRead) {
  AddTable("items", 1, 1);
  AddTable("users", 2, 0);
  AddRows("0.sst", "items", {{{0, 7}, {1, 2, 3, 4}, 5}, {{1}, {5, 6}, 5}});
  AddRows("1.sst", "items", {{{UINT64_MAX}, {7, 8}, 6}});
  AddRows("2.sst", "users", {{{}, {}, 9}});

  EXPECT_THAT(ReadRows("items"),
              IsOkAndHolds(ElementsAre(Batch{{0, 7}, {1, 2, 3, 4}, 5},
                                       Batch{{1}, {5, 6}, 5},
                                       Batch{{UINT64_MAX}, {7, 8}, 6})));
  EXPECT_THAT(ReadRows("users"), IsOkAndHolds(ElementsAre(Batch{{}, {}, 9})));
  EXPECT_THAT(ReadRows("item"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("table item")));
}

TEST_F(CheckpointReaderTest, ReadingRowsEndsAtTheVisitorsError) {
  AddTable("items", 1, 0);
  AddRows("0.sst", "items", {{{1}, {1}}, {{2}, {2}}});
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(root()));
  int batches = 0;
  EXPECT_THAT(reader->ReadRows("items",
                               [&](const RowBatch&) {
                                 ++batches;
                                 return absl::ResourceExhaustedError("full");
                               }),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(batches, 1);
}

TEST_F(CheckpointReaderTest, RowsThatTheManifestContradictsAreDataLoss) {
  struct Case {
    std::string table;
    uint32_t width;
    size_t slots;
    std::vector<Batch> batches;
    std::string want;
  };
  const Case cases[] = {
      {"users", 2, 0, {{{1}, {1, 2}}}, "a table that the manifest lacks"},
      {"items", 1, 2, {{{1}, {1, 2}}}, "rows of 2 float32 of table items"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.want);
    manifest_.Clear();
    AddTable(c.table, c.width, c.slots);
    AddRows("rows.sst", "items", c.batches);
    EXPECT_THAT(CheckpointReader::Open(root()).status(),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("rows.sst"), HasSubstr(c.want))));
  }
}

TEST_F(CheckpointReaderTest, EveryFlippedByteOfRowsIsDataLoss) {
  AddTable("items", 1, 0);
  AddRows("rows.sst", "items", {{{1, 2}, {1, 2}, 3}});
  const std::string bytes = MustRead(root() + "/rows.sst");
  for (size_t i = 0; i < bytes.size(); i += 7) {
    std::string flipped = bytes;
    flipped[i] ^= 0x20;
    Rewrite("rows.sst", flipped);
    EXPECT_THAT(ReadRows("items"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("rows.sst")))
        << i;
  }
}

TEST_F(CheckpointReaderTest, ACheckpointOfTheFirstFormatVersionIsRead) {
  manifest_.set_format_version(1);
  AddShard("0.sst", {{"a", 0, 0, 3, Ramp(0, 4)}});
  EXPECT_THAT(Read("a", 0, 0, 4), IsOkAndHolds(Ramp(0, 4)));
}

TEST_F(CheckpointReaderTest, EveryFlippedByteIsDataLossThatNamesItsFile) {
  AddShard("0.sst", {{"a", 0, 0, 1, {1, 2, 3}}});
  for (const std::string& name :
       {std::string("0.sst"), std::string("MANIFEST")}) {
    const std::string bytes = MustRead(root() + "/" + name);
    for (size_t i = 0; i < 2 * bytes.size(); ++i) {
      std::string flipped = bytes;
      flipped[i / 2] ^= i % 2 == 0 ? 1 << i / 2 % 7 : 0x80;
      Rewrite(name, flipped);
      ASSERT_THAT(Read("a", 0, 0, 3),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr(name)))
          << name << " byte " << i / 2;
    }
    Rewrite(name, bytes);
  }
  EXPECT_THAT(Read("a", 0, 0, 3), IsOkAndHolds(ElementsAre(1, 2, 3)));
}

// Four shards' files, each with a quarter of an array, a table and windows.
class FourShardsTest : public CheckpointReaderTest {
 protected:
  static constexpr size_t kElements = 300000;  // of a shard

  FourShardsTest() {
    AddTable("items", 1, 0);
    for (uint32_t shard = 0; shard < 4; ++shard) Write(shard);
    EXPECT_OK(WriteManifest(root(), manifest_));
  }

  void Write(uint32_t shard) {
    const auto writer =
        ShardWriter::Create(absl::StrCat(root(), "/", shard, ".sst"));
    ASSERT_OK(writer);
    (*writer)->SetWriter({shard, 4});
    const int64_t first = shard * kElements;
    ASSERT_OK((*writer)->AddElements("a", 0, first, shard + 1,
                                     Ramp(first, kElements)));
    const std::vector<uint64_t> ids = {shard};
    const std::vector<float> rows = {static_cast<float>(shard)};
    ASSERT_OK((*writer)->AddRows("items", {.ids = ids, .rows = rows}));
    ASSERT_OK((*writer)->AddDedup(shard, 4, {77, absl::StrCat("w", shard)}));
    ASSERT_OK_AND_ASSIGN(*manifest_.add_file(), (*writer)->Finish());
  }
  static std::vector<uint64_t> IdsFor(const CheckpointReader& reader,
                                      const ShardNumber& shard) {
    std::vector<uint64_t> ids;
    EXPECT_OK(reader.ReadRowsFor("items", shard, [&](const RowBatch& batch) {
      ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
      return absl::OkStatus();
    }));
    return ids;
  }
};

TEST_F(FourShardsTest, AShardOfTheSameShardingReadsItsOwnFileOnce) {
  std::vector<float> values(kElements);
  for (uint32_t shard = 0; shard < 4; ++shard) {
    const ShardNumber number = {shard, 4};
    ASSERT_OK_AND_ASSIGN(const auto reader,
                         CheckpointReader::OpenForShard(root(), number));
    const int64_t first = shard * kElements;
    EXPECT_THAT(reader->ReadElements("a", 0, first, absl::MakeSpan(values)),
                IsOkAndHolds(shard + 1));
    EXPECT_EQ(values, Ramp(first, kElements));
    EXPECT_THAT(IdsFor(*reader, number), ElementsAre(shard));
    ASSERT_OK_AND_ASSIGN(const auto windows, reader->ReadDedup(shard, 4));
    ASSERT_EQ(windows.size(), 1u);
    EXPECT_EQ(windows[0].window, absl::StrCat("w", shard));
    EXPECT_OK(reader->Verify());
    const uint64_t bytes = manifest_.file(shard).bytes();
    EXPECT_GE(reader->bytes_read(), bytes);
    EXPECT_LE(reader->bytes_read(), bytes + (16 << 10));
  }
}

TEST_F(FourShardsTest, AShardOfAnotherShardingReadsTheBlocksThatItNeeds) {
  // The middle of the array, with entries of files 1 and 2.
  const ShardNumber number = {1, 3};
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       CheckpointReader::OpenForShard(root(), number));
  std::vector<float> values(2000);
  const int64_t first = 2 * kElements - 1000;
  EXPECT_THAT(reader->ReadElements("a", 0, first, absl::MakeSpan(values)),
              IsOkAndHolds(3));
  EXPECT_EQ(values, Ramp(first, 2000));
  EXPECT_THAT(IdsFor(*reader, number), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(reader->ReadDedup(1, 3), IsOkAndHolds(IsEmpty()));
  EXPECT_OK(reader->Verify());
  // Two entries, and the ends of four files.
  EXPECT_LE(reader->bytes_read(), 2 * 65536 * sizeof(float) + 4 * (16 << 10));
}

// Four ps's files, and then worker 0's, with the variables.
TEST_F(FourShardsTest, AShardReadsItsOwnFileBesideAWorkers) {
  ASSERT_OK_AND_ASSIGN(const auto writer,
                       ShardWriter::Create(root() + "/worker.sst"));
  writer->SetWriter({0, 1});
  ASSERT_OK(writer->AddElements("b", 0, 0, 9, Ramp(0, kElements)));
  ASSERT_OK_AND_ASSIGN(*manifest_.add_file(), writer->Finish());
  ASSERT_OK(WriteManifest(root(), manifest_));
  for (uint32_t shard = 0; shard < 4; ++shard) {
    const ShardNumber number = {shard, 4};
    ASSERT_OK_AND_ASSIGN(const auto reader,
                         CheckpointReader::OpenForShard(root(), number));
    EXPECT_THAT(IdsFor(*reader, number), ElementsAre(shard));
    ASSERT_OK_AND_ASSIGN(const auto windows, reader->ReadDedup(shard, 4));
    ASSERT_EQ(windows.size(), 1u);
    EXPECT_EQ(windows[0].window, absl::StrCat("w", shard));
    EXPECT_OK(reader->Verify());
    // The rows, and the end of one file.
    EXPECT_LE(reader->bytes_read(), 16 << 10);
  }
  // Other numbers of shards need all, also as many as there are files.
  for (const uint32_t shards : {1, 2, 3, 5, 6}) {
    for (uint32_t shard = 0; shard < shards; ++shard) {
      SCOPED_TRACE(absl::StrCat(shard, " of ", shards));
      const ShardNumber number = {shard, shards};
      ASSERT_OK_AND_ASSIGN(const auto reader,
                           CheckpointReader::OpenForShard(root(), number));
      EXPECT_THAT(IdsFor(*reader, number), ElementsAre(0, 1, 2, 3));
      EXPECT_THAT(reader->ReadDedup(shard, shards), IsOkAndHolds(IsEmpty()));
      std::vector<float> values(2000);
      const int64_t first = 2 * kElements - 1000;
      EXPECT_OK(reader->ReadElements("a", 0, first, absl::MakeSpan(values)));
      EXPECT_EQ(values, Ramp(first, 2000));
      EXPECT_OK(reader->ReadElements("b", 0, 7, absl::MakeSpan(values)));
      EXPECT_EQ(values, Ramp(7, 2000));
    }
  }
}

TEST_F(FourShardsTest, DamageInAFileThatIsNotNeededIsNotSeen) {
  std::string bytes = MustRead(root() + "/3.sst");
  bytes[bytes.size() / 2] ^= 1;
  Rewrite("3.sst", bytes);
  std::vector<float> values(kElements);
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       CheckpointReader::OpenForShard(root(), {0, 4}));
  EXPECT_OK(reader->ReadElements("a", 0, 0, absl::MakeSpan(values)));
  EXPECT_OK(reader->Verify());
  EXPECT_THAT(
      reader->ReadElements("a", 0, 3 * kElements, absl::MakeSpan(values)),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("3.sst")));
}

TEST_F(FourShardsTest, ABlockThatCantBeReadNowIsNoDamage) {
  std::vector<float> values(kElements);
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       CheckpointReader::OpenForShard(root(), {0, 4}));
  FailReadsOf(std::filesystem::canonical(root()) / "0.sst", ESTALE);
  EXPECT_THAT(reader->ReadElements("a", 0, 0, absl::MakeSpan(values)),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("0.sst"), HasSubstr("Stale"))));
  EXPECT_THAT(CheckpointReader::OpenForShard(root(), {0, 4}).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("0.sst")));
  FailReadsOf("", 0);
  EXPECT_OK(reader->ReadElements("a", 0, 0, absl::MakeSpan(values)));
}

TEST_F(CheckpointReaderTest, EveryTruncationOfAShardIsDataLoss) {
  AddShard("0.sst", {{"a", 0, 0, 1, {1, 2, 3}}});
  const std::string bytes = MustRead(root() + "/0.sst");
  for (size_t size = 0; size < bytes.size(); ++size) {
    Rewrite("0.sst", bytes.substr(0, size));
    ASSERT_THAT(CheckpointReader::Open(root()).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("0.sst")))
        << size;
  }
}

TEST_F(CheckpointReaderTest, AMissingShardIsDataLoss) {
  AddShard("0.sst", {});
  AddShard("1.sst", {});
  std::filesystem::remove(root() + "/1.sst");

  EXPECT_THAT(CheckpointReader::Open(root()).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("1.sst")));
}

TEST_F(CheckpointReaderTest, ADirectoryWithoutManifestIsNotFound) {
  EXPECT_THAT(CheckpointReader::Open(root()).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(root())));
  EXPECT_THAT(CheckpointReader::Open(root() + "/none").status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CheckpointReaderTest, AnUnknownFormatVersionIsFailedPrecondition) {
  manifest_.set_format_version(kFormatVersion + 1);
  AddShard("0.sst", {});

  EXPECT_THAT(
      CheckpointReader::Open(root()).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("MANIFEST")));
}

TEST_F(CheckpointReaderTest, AFileWithTheRightChecksumThatIsNoShardIsDataLoss) {
  AddShard("0.sst", {});
  const std::string bytes = "not an SST file";
  Rewrite("0.sst", bytes);
  manifest_.mutable_file(0)->set_bytes(bytes.size());
  manifest_.mutable_file(0)->set_crc32c(Crc32cOf(bytes));
  ASSERT_OK(WriteManifest(root(), manifest_));

  EXPECT_THAT(CheckpointReader::Open(root()).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("0.sst")));
}

TEST_F(CheckpointReaderTest, ElementsThatTwoShardsHaveAreDataLoss) {
  AddShard("0.sst", {{"a", 0, 0, 0, Ramp(0, 4)}});
  AddShard("1.sst", {{"a", 0, 3, 0, Ramp(3, 4)}});

  EXPECT_THAT(CheckpointReader::Open(root()).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("element 3")));
}

TEST_F(CheckpointReaderTest, AFileThatTheManifestDoesNotNameIsIgnored) {
  AddShard("0.sst", {{"a", 0, 0, 0, {1}}});
  Rewrite("1.sst", "left by somebody");

  EXPECT_THAT(Read("a", 0, 0, 1), IsOkAndHolds(ElementsAre(1)));
}

TEST_F(CheckpointReaderTest, AnOpenCheckpointStaysReadableWhenItIsRemoved) {
  AddShard("0.sst", {{"a", 0, 0, 1, Ramp(0, 70000)}});
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(root()));
  std::filesystem::remove_all(root());
  std::vector<float> values(70000);

  EXPECT_OK(reader->ReadElements("a", 0, 0, absl::MakeSpan(values)));
  EXPECT_EQ(values, Ramp(0, 70000));
}

}  // namespace
}  // namespace parasol
