#include "storage/checkpoint_manifest.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

durable::CheckpointManifest ManifestWithFile(const std::string& name) {
  durable::CheckpointManifest manifest;
  manifest.set_format_version(kFormatVersion);
  manifest.set_global_step(1200);
  manifest.set_run_id("run");
  manifest.add_variable()->set_name("dense/kernel");
  durable::CheckpointFile* file = manifest.add_file();
  file->set_name(name);
  file->set_bytes(7);
  return manifest;
}

TEST(CheckpointManifestTest, DecodingGivesWhatWasEncoded) {
  const durable::CheckpointManifest manifest = ManifestWithFile("shard.sst");

  ASSERT_OK_AND_ASSIGN(const durable::CheckpointManifest decoded,
                       DecodeManifest(EncodeManifest(manifest)));
  EXPECT_EQ(decoded.SerializeAsString(), manifest.SerializeAsString());
}

TEST(CheckpointManifestTest, EveryTruncationIsDataLoss) {
  const std::string bytes = EncodeManifest(ManifestWithFile("shard.sst"));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(DecodeManifest(bytes.substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss))
        << size;
  }
  EXPECT_THAT(DecodeManifest(bytes + "x"),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(CheckpointManifestTest, EveryFlippedBitIsDataLoss) {
  const std::string bytes = EncodeManifest(ManifestWithFile("shard.sst"));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= 1 << bit % 8;
    EXPECT_THAT(DecodeManifest(flipped), StatusIs(absl::StatusCode::kDataLoss))
        << bit;
  }
}

TEST(CheckpointManifestTest, AnotherFormatVersionIsFailedPrecondition) {
  durable::CheckpointManifest manifest = ManifestWithFile("shard.sst");
  for (const uint32_t version : {0, 6}) {
    SCOPED_TRACE(version);
    manifest.set_format_version(version);
    EXPECT_THAT(
        DecodeManifest(EncodeManifest(manifest)),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 HasSubstr(absl::StrCat("format_version is ", version,
                                        "; this program knows 1 to 5"))));
  }
}

TEST(CheckpointManifestTest, FormatVersionsBackToTheFirstAreRead) {
  durable::CheckpointManifest manifest = ManifestWithFile("shard.sst");
  for (const uint32_t version : {1, 2, 3, 4, 5}) {
    SCOPED_TRACE(version);
    manifest.set_format_version(version);
    EXPECT_OK(DecodeManifest(EncodeManifest(manifest)));
  }
}

TEST(CheckpointManifestTest, OlderFormatVersionsHaveNoIncrements) {
  durable::CheckpointManifest manifest = ManifestWithFile("shard.sst");
  durable::CheckpointFile& increment = *manifest.add_file();
  increment.set_name("shard.1.sst");
  increment.set_increment(1);
  EXPECT_OK(DecodeManifest(EncodeManifest(manifest)));
  for (const uint32_t version : {1, 2}) {
    manifest.set_format_version(version);
    EXPECT_THAT(DecodeManifest(EncodeManifest(manifest)),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr(absl::StrCat("format_version is ", version,
                                                ", which has no"))));
  }
}

TEST(CheckpointManifestTest, FilesOfOtherDirectoriesAreEarlierOnes) {
  const durable::CheckpointManifest manifest =
      ManifestWithFile("ckpt-000000001199/shard.sst");
  EXPECT_TRUE(ListsOtherDirectories(manifest));
  EXPECT_EQ(FormatVersionFor(manifest), 5u);
  EXPECT_OK(DecodeManifest(EncodeManifest(manifest)));
  durable::CheckpointManifest older = manifest;
  older.set_format_version(4);
  EXPECT_THAT(DecodeManifest(EncodeManifest(older)),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("has no files of other")));
  for (const char* name :
       {"ckpt-000000001200/shard.sst", "ckpt-000000001201/shard.sst",
        "ckpt-000000001199/MANIFEST", "other/shard.sst"}) {
    EXPECT_THAT(
        CheckFileNames(ManifestWithFile(name)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a plain")))
        << name;
  }
  // Each has a name of its own, in whichever directory it is.
  durable::CheckpointManifest twice = manifest;
  twice.add_file()->set_name("shard.sst");
  EXPECT_THAT(CheckFileNames(twice),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("twice")));
}

TEST(CheckpointManifestTest, TheVersionIsTheOldestThatHasTheForm) {
  durable::CheckpointManifest manifest = ManifestWithFile("shard.sst");
  EXPECT_EQ(FormatVersionFor(manifest), 2u);
  manifest.mutable_file(0)->set_increment(1);
  EXPECT_EQ(FormatVersionFor(manifest), 3u);
  manifest.mutable_file(0)->set_increment(0);
  job::SparseTable& table =
      *manifest.mutable_job()->mutable_model()->add_sparse_table();
  EXPECT_EQ(FormatVersionFor(manifest), 2u);
  table.mutable_admission()->set_min_count(2);
  EXPECT_EQ(FormatVersionFor(manifest), 4u);
  manifest.add_table()->set_width(3);
  manifest.mutable_table(0)->add_slot("m");
  EXPECT_EQ(FormatVersionFor(manifest), 4u);
  manifest.mutable_table(0)->add_slot_width(1);
  EXPECT_EQ(FormatVersionFor(manifest), 5u);
  manifest.mutable_job()->Clear();
  EXPECT_EQ(FormatVersionFor(manifest), 5u);
}

TEST(CheckpointManifestTest, ARowHasItsValuesAndEachSlot) {
  durable::CheckpointTable table;
  table.set_width(3);
  EXPECT_EQ(FloatsOfRow(table), 3u);
  table.add_slot("m");
  table.add_slot("v");
  EXPECT_EQ(FloatsOfRow(table), 9u);
  table.add_slot_width(1);
  table.add_slot_width(3);
  EXPECT_EQ(SlotWidthOf(table, 0), 1u);
  EXPECT_EQ(SlotWidthOf(table, 1), 3u);
  EXPECT_EQ(FloatsOfRow(table), 7u);
}

TEST(CheckpointManifestTest, WidthsThatDontFitTheSlotsAreDataLoss) {
  durable::CheckpointManifest manifest = ManifestWithFile("shard.sst");
  manifest.set_format_version(5);
  durable::CheckpointTable& table = *manifest.add_table();
  table.set_name("users");
  table.set_width(3);
  table.add_slot("m");
  table.add_slot_width(1);
  EXPECT_OK(DecodeManifest(EncodeManifest(manifest)));
  const auto expect_refused = [&manifest](const std::string& why) {
    EXPECT_THAT(DecodeManifest(EncodeManifest(manifest)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(why)));
  };
  manifest.set_format_version(4);
  expect_refused("format_version is 4, which has no widths of slots");
  manifest.set_format_version(5);
  for (const uint32_t width : {uint32_t{0}, uint32_t{2}, UINT32_MAX}) {
    table.set_slot_width(0, width);
    expect_refused(absl::StrCat("\"users\" has a slot of width ", width));
  }
  table.set_slot_width(0, 1);
  table.add_slot_width(1);
  expect_refused("\"users\" has 1 slots, and widths of 2");
  table.clear_slot();
  expect_refused("\"users\" has 0 slots, and widths of 2");
}

TEST(CheckpointManifestTest, ANameThatLeavesTheDirectoryIsRefused) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."),
        std::string("../shard.sst"), std::string("/etc/passwd"),
        std::string("a/b"), std::string("a\0b", 3), std::string("MANIFEST")}) {
    SCOPED_TRACE(name);
    EXPECT_THAT(CheckFileNames(ManifestWithFile(name)),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(DecodeManifest(EncodeManifest(ManifestWithFile(name))),
                StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST(CheckpointManifestTest, AFileThatIsListedTwiceIsRefused) {
  durable::CheckpointManifest manifest = ManifestWithFile("shard.sst");
  *manifest.add_file() = manifest.file(0);

  EXPECT_THAT(CheckFileNames(manifest),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'shard.sst' twice")));
}

}  // namespace
}  // namespace parasol
