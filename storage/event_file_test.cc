#include "storage/event_file.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"
#include "storage/remote/testing/memory_files.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

// TensorFlow's bytes: shared/golden/tensorboard_and_bundle_bytes.json.
TEST(EventFileTest, RecordsAreTensorFlowsToTheByte) {
  EXPECT_EQ(absl::BytesToHexString(VersionEvent(At(1))),
            "09000000000000f03f1a0d627261696e2e4576656e743a32");
  EXPECT_EQ(absl::BytesToHexString(FrameRecord(VersionEvent(At(1)))),
            "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e"
            "743a3286bf577a");
  EXPECT_EQ(
      absl::BytesToHexString(FrameRecord(ScalarEvent(At(2), 7, "loss", .5))),
      "1a00000000000000129bd82d09000000000000004010072a0d0a0b0a046c6f7373150000"
      "003fc33fc24a");
}

// Event { wall_time: 1 step: 300 session_log { status: START } }, by protoc.
TEST(EventFileTest, AStartNamesItsStep) {
  EXPECT_EQ(absl::BytesToHexString(StartEvent(At(1), 300)),
            "09000000000000f03f10ac023a020801");
}

TEST(EventFileTest, AFileBeginsWithItsVersionAndGoesOn) {
  const std::string directory = testing::TempDir() + "/run/tensorboard/train";
  std::filesystem::remove_all(directory);
  EventFile file(directory, "host.7", /*first_step=*/11);
  EXPECT_THAT(ListDirectory(directory), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_OK(file.Add(20, {{"loss", .5}, {"learning_rate", .1}}, At(100)));
  ASSERT_OK(file.Add(0, {{"loss", .25}}, At(110)));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       ListDirectory(directory));
  EXPECT_THAT(names, ElementsAre("events.out.tfevents.0000000100.host.7"));
  EXPECT_THAT(ReadFile(directory + "/" + names[0], 10000),
              IsOkAndHolds(absl::StrCat(
                  FrameRecord(VersionEvent(At(100))),
                  FrameRecord(StartEvent(At(100), 11)),
                  FrameRecord(ScalarEvent(At(100), 20, "loss", .5)),
                  FrameRecord(ScalarEvent(At(100), 20, "learning_rate", .1)),
                  FrameRecord(ScalarEvent(At(110), 0, "loss", .25)))));
}

TEST(EventFileTest, HistogramsFollowScalarsUnlessTheyAreOfNothing) {
  const std::string directory = testing::TempDir() + "/run/tensorboard/eval";
  std::filesystem::remove_all(directory);
  EventFile file(directory, "host.7", /*first_step=*/0);
  const ValueHistogram histogram = HistogramOf({.5f, 1.5f, 1.5f});
  ASSERT_OK(file.Add(3, {{"loss", .5}},
                     {{"kernel", histogram}, {"none", HistogramOf({})}},
                     At(100)));
  EXPECT_THAT(
      ReadFile(directory + "/events.out.tfevents.0000000100.host.7", 10000),
      IsOkAndHolds(absl::StrCat(
          FrameRecord(VersionEvent(At(100))),
          FrameRecord(ScalarEvent(At(100), 3, "loss", .5)),
          FrameRecord(HistogramEvent(At(100), 3, "kernel", histogram)))));
}

TEST(EventFileTest, ADirectoryThatCannotBeMadeIsNamed) {
  EventFile file("/proc/none", "host.7", 0);
  const absl::Status status = file.Add(1, {{"loss", 1}}, At(1));
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), "/proc/none")) << status;
}

TEST(EventFileTest, InAStoreItIsWrittenAnewAndWholeAtTheEnd) {
  MemoryFiles store;
  const absl::Time now = absl::FromUnixSeconds(7);
  std::string written;
  {
    EventFile file("s3://b/run/tensorboard/train", "host.1", /*first_step=*/1);
    ASSERT_OK(file.Add(1, {{"loss", 2}}, now));
    ASSERT_THAT(store.Paths(), testing::SizeIs(1));
    const std::string path = store.Paths()[0];
    EXPECT_EQ(path,
              "s3://b/run/tensorboard/train/"
              "events.out.tfevents.0000000007.host.1");
    ASSERT_OK_AND_ASSIGN(written, store.Read(path, 1000));
    ASSERT_OK(
        file.Add(2, {{"loss", 1}}, {}, now, EventFile::Durability::kWritten));
    EXPECT_THAT(store.Read(path, 1000), IsOkAndHolds(written));
  }
  EXPECT_THAT(
      store.Read(store.Paths()[0], 1000),
      IsOkAndHolds(written + FrameRecord(ScalarEvent(now, 2, "loss", 1))));
}

TEST(EventFileTest, InAStoreALargeOneIsFollowedByAnother) {
  MemoryFiles store;
  {
    EventFile file("s3://b/run/train", "host.1", 5);
    const std::string tag(1 << 20, 't');
    absl::Time now = absl::FromUnixSeconds(100);
    for (int step = 5; step < 5 + 10; ++step) {
      EXPECT_OK(file.Add(step, {{tag, 1}}, now += absl::Seconds(1)));
    }
  }
  std::vector<size_t> sizes;
  int starts = 0;
  for (const std::string& path : store.Paths()) {
    ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path, 1 << 30));
    sizes.push_back(bytes.size());
    const std::string start =
        FrameRecord(StartEvent(absl::FromUnixSeconds(101), 5));
    starts += absl::StrContains(bytes, start) ? 1 : 0;
    EXPECT_TRUE(absl::StrContains(bytes.substr(0, 100), "brain.Event:2"));
  }
  ASSERT_THAT(sizes, testing::SizeIs(2));
  EXPECT_GE(sizes[0], EventFile::kLargeInStore);
  EXPECT_LT(sizes[1], EventFile::kLargeInStore);
  EXPECT_EQ(starts, 1) << "it would drop what the first one has";
}

}  // namespace
}  // namespace parasol
