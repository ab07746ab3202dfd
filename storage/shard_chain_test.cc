#include "storage/shard_chain.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_reader.h"
#include "storage/durable_file.h"
#include "storage/shard_writer.h"
#include "storage/testing/checkpoint_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr ShardNumber kShard = {.shard = 0, .num_shards = 1};

// One shard with a variable "a" of two entries of 2 elements, and a table of
// rows of one float.
class ShardChainTest : public CheckpointFixture {
 protected:
  struct Contents {
    ShardNumber shard = kShard;
    std::vector<Elements> elements = {};
    std::map<uint64_t, float> rows = {};
    std::vector<uint64_t> removed = {};
    std::map<uint64_t, uint32_t> counts = {};
    int64_t updates = 0;  // of the table
    std::string window = "window";
    std::optional<JournalPlace> journal = {};
  };

  ShardChainTest() {
    durable::CheckpointTable& table = *manifest_.add_table();
    table.set_name("items");
    table.set_width(1);
  }

  // Writes a file and returns its entry of the manifest.
  durable::CheckpointFile Write(
      const std::string& name, const Contents& contents,
      const std::optional<durable::CheckpointFile>& base = std::nullopt) {
    auto writer = ShardWriter::Create(root() + "/" + name);
    EXPECT_OK(writer);
    (*writer)->SetWriter(contents.shard);
    if (contents.journal) (*writer)->SetJournal(*contents.journal);
    if (base) (*writer)->SetBase({base->bytes(), base->crc32c()});
    for (const uint64_t id : contents.removed) {
      EXPECT_OK((*writer)->AddRemoved("items", {id}));
    }
    for (const Elements& entry : contents.elements) {
      EXPECT_OK((*writer)->AddElements(entry.variable, entry.array, entry.first,
                                       entry.updates, entry.values));
    }
    EXPECT_OK((*writer)->AddRows("items", {.updates = contents.updates}));
    for (const auto& [id, value] : contents.rows) {
      const uint64_t ids[] = {id};
      const float row[] = {value};
      EXPECT_OK((*writer)->AddRows(
          "items", {.updates = contents.updates, .ids = ids, .rows = row}));
    }
    for (const auto& [id, count] : contents.counts) {
      const uint64_t ids[] = {id};
      const uint32_t counts[] = {count};
      EXPECT_OK((*writer)->AddCounts("items", {.ids = ids, .counts = counts}));
    }
    EXPECT_OK((*writer)->AddDedup(
        contents.shard.shard, contents.shard.num_shards,
        {.worker_incarnation = 7, .window = contents.window}));
    return *(*writer)->Finish();
  }

  // Lists the file behind the others, as increment `increment`.
  void List(durable::CheckpointFile file, uint32_t increment) {
    file.set_increment(increment);
    *manifest_.add_file() = file;
    ASSERT_OK(WriteManifest(root(), manifest_));
  }

  void WriteChain() {
    const auto whole = Write(
        "0.sst", {.elements = {{"a", 0, 0, 1, {1, 2}}, {"a", 0, 2, 1, {3, 4}}},
                  .rows = {{1, 10}, {2, 20}, {3, 30}},
                  .updates = 1,
                  .journal = JournalPlace{9, 1}});
    const auto first = Write("0.1.sst",
                             {.elements = {{"a", 0, 2, 2, {5, 6}}},
                              .rows = {{2, 21}, {4, 40}},
                              .updates = 2,
                              .journal = JournalPlace{9, 2}},
                             whole);
    const auto second = Write("0.2.sst",
                              {.elements = {{"a", 0, 2, 3, {7, 8}}},
                               .rows = {{4, 41}},
                               .updates = 3,
                               .window = "newest",
                               .journal = JournalPlace{9, 3}},
                              first);
    List(whole, 0);
    List(first, 1);
    List(second, 2);
  }

  absl::StatusOr<std::vector<float>> ReadAll() {
    ASSIGN_OR_RETURN(const auto reader, CheckpointReader::Open(root()));
    std::vector<float> values(4);
    RETURN_IF_ERROR(
        reader->ReadElements("a", 0, 0, absl::MakeSpan(values)).status());
    return values;
  }

  durable::CheckpointManifest manifest_;
};

TEST_F(ShardChainTest, TheNewestFileOfEachKeyIsRead) {
  WriteChain();
  EXPECT_THAT(ReadAll(), IsOkAndHolds(ElementsAre(1, 2, 7, 8)));
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(root()));
  std::map<uint64_t, float> rows = {};
  int64_t updates = 0;
  ASSERT_OK(reader->ReadRows("items", [&](const RowBatch& batch) {
    updates = std::max(updates, batch.updates);
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      EXPECT_TRUE(rows.emplace(batch.ids[i], batch.rows[i]).second);
    }
    return absl::OkStatus();
  }));
  EXPECT_THAT(rows, UnorderedElementsAre(Pair(1, 10), Pair(2, 21), Pair(3, 30),
                                         Pair(4, 41)));
  EXPECT_EQ(updates, 3);
  ASSERT_OK_AND_ASSIGN(const auto windows, reader->ReadDedup(0, 1));
  ASSERT_THAT(windows, SizeIs(1));
  EXPECT_EQ(windows[0].window, "newest");
  EXPECT_THAT(reader->JournalOf(0, 1),
              IsOkAndHolds(std::optional(JournalPlace{9, 3})));
  ASSERT_OK_AND_ASSIGN(const auto journals, reader->Journals());
  ASSERT_THAT(journals, SizeIs(1));
  EXPECT_EQ(journals[0].shard, kShard);
  EXPECT_EQ(journals[0].place, (JournalPlace{9, 3}));
  EXPECT_OK(reader->Verify());
}

TEST_F(ShardChainTest, ARowThatOneFileHasTwiceIsVisitedTwice) {
  // Readers that insert rows find the damage.
  const auto whole = Write("0.sst", {.rows = {{1, 10}}});
  const auto writer = ShardWriter::Create(root() + "/0.1.sst");
  ASSERT_OK(writer);
  (*writer)->SetWriter(kShard);
  (*writer)->SetBase({whole.bytes(), whole.crc32c()});
  const uint64_t ids[] = {1};
  const float row[] = {11};
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK((*writer)->AddRows("items", {.ids = ids, .rows = row}));
  }
  ASSERT_OK_AND_ASSIGN(const auto increment, (*writer)->Finish());
  List(whole, 0);
  List(increment, 1);
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(root()));
  std::vector<float> rows;
  ASSERT_OK(reader->ReadRows("items", [&](const RowBatch& batch) {
    rows.insert(rows.end(), batch.rows.begin(), batch.rows.end());
    return absl::OkStatus();
  }));
  EXPECT_THAT(rows, ElementsAre(11, 11));
}

TEST_F(ShardChainTest, ChainsOfSeveralShardsAreApart) {
  const auto first = Write("0.sst", {.shard = {0, 2}, .rows = {{1, 10}}});
  const auto second = Write("1.sst", {.shard = {1, 2}, .rows = {{2, 20}}});
  const auto increment =
      Write("1.1.sst", {.shard = {1, 2}, .rows = {{2, 21}}}, second);
  List(first, 0);
  List(second, 0);
  List(increment, 1);
  EXPECT_THAT(ChainsOf(manifest_),
              ElementsAre(FileChain{0, 1}, FileChain{1, 2}));
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       CheckpointReader::OpenForShard(root(), {1, 2}));
  std::vector<float> rows;
  ASSERT_OK(reader->ReadRowsFor("items", {1, 2}, [&](const RowBatch& batch) {
    rows.insert(rows.end(), batch.rows.begin(), batch.rows.end());
    return absl::OkStatus();
  }));
  EXPECT_THAT(rows, ElementsAre(21));
  // Nothing of the other shard's file was read.
  EXPECT_LT(reader->bytes_read(),
            second.bytes() + increment.bytes() + first.bytes());
}

TEST_F(ShardChainTest, AnIncrementToAnotherFileIsDamage) {
  const auto whole = Write("0.sst", {.elements = {{"a", 0, 0, 1, {1, 2}}}});
  const auto other = Write("1.sst", {.elements = {{"a", 0, 0, 1, {3, 4}}}});
  const auto increment =
      Write("0.1.sst", {.elements = {{"a", 0, 0, 2, {5, 6}}}}, other);
  List(whole, 0);
  List(increment, 1);
  EXPECT_THAT(CheckpointReader::Open(root()),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("0.1.sst: is an increment to another file "
                                 "than 0.sst")));
}

TEST_F(ShardChainTest, AChainWithAMissingIncrementIsDamage) {
  const auto whole = Write("0.sst", {.updates = 1});
  const auto first = Write("0.1.sst", {.updates = 2}, whole);
  const auto second = Write("0.2.sst", {.updates = 3}, first);
  List(whole, 0);
  List(second, 1);
  EXPECT_THAT(
      CheckpointReader::Open(root()),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("0.2.sst: is an")));
}

TEST_F(ShardChainTest, WholeFilesAndIncrementsAreNotMistakenForEachOther) {
  const auto whole = Write("0.sst", {});
  const auto increment = Write("0.1.sst", {}, whole);
  List(whole, 0);
  List(Write("other.sst", {}), 1);
  EXPECT_THAT(CheckpointReader::Open(root()),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("other.sst: is a whole file")));
  manifest_.clear_file();
  List(increment, 0);
  EXPECT_THAT(CheckpointReader::Open(root()),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("0.1.sst: is an increment, but")));
}

TEST_F(ShardChainTest, AnIncrementOfAnotherShardIsDamage) {
  const auto whole = Write("0.sst", {});
  List(whole, 0);
  List(Write("0.1.sst", {.shard = {1, 2}}, whole), 1);
  EXPECT_THAT(CheckpointReader::Open(root()),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("written by another shard than 0.sst")));
}

TEST_F(ShardChainTest, ElementsThatAreNoEntryOfTheWholeFileAreDamage) {
  const auto whole = Write(
      "0.sst", {.elements = {{"a", 0, 0, 1, {1, 2}}, {"a", 0, 2, 1, {3, 4}}}});
  for (const Elements& stray : std::vector<Elements>{{"a", 0, 0, 2, {5}},
                                                     {"a", 0, 1, 2, {5, 6}},
                                                     {"a", 0, 4, 2, {5, 6}},
                                                     {"a", 1, 0, 2, {5, 6}},
                                                     {"b", 0, 0, 2, {5, 6}}}) {
    manifest_.clear_file();
    List(whole, 0);
    List(Write("0.1.sst", {.elements = {stray}}, whole), 1);
    EXPECT_THAT(CheckpointReader::Open(root()),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("which are no entry of 0.sst")))
        << stray.variable << stray.array << stray.first;
  }
}

TEST_F(ShardChainTest, TheManifestListsIncrementsBehindTheirFiles) {
  WriteChain();
  for (const std::vector<uint32_t>& numbers :
       std::vector<std::vector<uint32_t>>{
           {1, 2, 3}, {0, 2, 1}, {0, 1, 1}, {0, 1, 3}}) {
    for (int i = 0; i < 3; ++i) {
      manifest_.mutable_file(i)->set_increment(numbers[i]);
    }
    ASSERT_OK(WriteManifest(root(), manifest_));
    EXPECT_THAT(
        CheckpointReader::Open(root()),
        StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is increment")));
  }
}

TEST_F(ShardChainTest, DamageOfAnIncrementNamesIt) {
  WriteChain();
  std::string bytes = MustRead(root() + "/0.1.sst");
  bytes[bytes.find("items") + 40] ^= 1;
  ASSERT_OK(WriteFileDurably(root() + "/0.1.sst", bytes));
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(root()));
  EXPECT_THAT(reader->ReadRows(
                  "items", [](const RowBatch&) { return absl::OkStatus(); }),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("0.1.sst")));
}

TEST_F(ShardChainTest, OlderProgramsReadCheckpointsOfWholeFilesAlone) {
  WriteChain();
  EXPECT_EQ(FormatVersionFor(manifest_), 3);
  manifest_.mutable_file()->DeleteSubrange(1, 2);
  EXPECT_EQ(FormatVersionFor(manifest_), 2);
}

TEST(IncrementBaseTest, OnlyItsOwnBytesAreDecoded) {
  const IncrementBase base = {.bytes = 1234, .crc32c = 5678};
  EXPECT_EQ(IncrementBase::Decode(base.Encode()), base);
  EXPECT_EQ(IncrementBase::Decode(base.Encode() + "x"), std::nullopt);
  EXPECT_EQ(IncrementBase::Decode("short"), std::nullopt);
}

// A file that names rows as gone hides older files' rows, not its own, and not
// newer ones.
TEST_F(ShardChainTest, RowsThatHaveGoneAreNotRead) {
  const auto whole =
      Write("0.sst", {.rows = {{1, 10}, {2, 20}, {3, 30}}, .updates = 1});
  const auto first = Write(
      "0.1.sst",
      {.rows = {{2, 21}, {4, 40}, {5, 50}}, .removed = {1, 2, 3}, .updates = 2},
      whole);
  const auto second = Write(
      "0.2.sst", {.rows = {{3, 31}}, .removed = {4}, .updates = 3}, first);
  List(whole, 0);
  const durable::CheckpointManifest older = manifest_;
  List(first, 1);
  List(second, 2);
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(root()));
  std::map<uint64_t, float> rows;
  const auto add = [&rows](const RowBatch& batch) {
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      EXPECT_TRUE(rows.emplace(batch.ids[i], batch.rows[i]).second);
    }
    return absl::OkStatus();
  };
  ASSERT_OK(reader->ReadRows("items", add));
  EXPECT_THAT(rows,
              UnorderedElementsAre(Pair(2, 21), Pair(3, 31), Pair(5, 50)));
  rows.clear();
  std::vector<uint64_t> gone;
  ASSERT_OK(reader->ReadNewerRows(
      older, "items", add, [&gone](absl::Span<const uint64_t> ids) {
        gone.insert(gone.end(), ids.begin(), ids.end());
        return absl::OkStatus();
      }));
  EXPECT_THAT(rows,
              UnorderedElementsAre(Pair(2, 21), Pair(3, 31), Pair(5, 50)));
  EXPECT_THAT(gone, UnorderedElementsAre(1, 4));
}

TEST_F(ShardChainTest, CountsAreTheNewestFiles) {
  const auto whole = Write("0.sst", {.counts = {{7, 1}, {8, 2}}});
  const auto first = Write("0.1.sst", {.counts = {{8, 3}, {9, 1}}}, whole);
  List(whole, 0);
  List(first, 1);
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(root()));
  std::map<uint64_t, uint32_t> counts;
  ASSERT_OK(
      reader->ReadCountsFor("items", kShard, [&](const CountBatch& batch) {
        for (size_t i = 0; i < batch.ids.size(); ++i) {
          counts[batch.ids[i]] += batch.counts[i];
        }
        return absl::OkStatus();
      }));
  EXPECT_THAT(counts, UnorderedElementsAre(Pair(8, 3), Pair(9, 1)));
}

}  // namespace
}  // namespace parasol
