#include "cluster/checkpoint/model/known_manifests.h"

#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "cluster/checkpoint/model/checkpoint_listing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_manifest.h"
#include "storage/remote/testing/memory_files.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kRun[] = "s3://b/run";

class KnownManifestsTest : public testing::Test {
 protected:
  KnownManifestsTest() {
    files_.OnRequest([this](const MemoryFiles::Request& request) {
      requests_.push_back(request.what);
      return MemoryFiles::Fate::kDone;
    });
  }
  void Write(int64_t step, int64_t created) {
    durable::CheckpointManifest manifest;
    manifest.set_format_version(2);
    manifest.set_global_step(step);
    manifest.set_created_unix_micros(created);
    files_.Put(CheckpointStore(kRun).PathOf(step) + "/MANIFEST",
               EncodeManifest(manifest));
  }
  static bool All(const durable::CheckpointManifest&) { return true; }

  MemoryFiles files_;
  std::vector<std::string> requests_;
  KnownManifests manifests_ = KnownManifests(CheckpointStore(kRun));
};

TEST_F(KnownManifestsTest, WhatHasNotChangedIsNotReadAgain) {
  for (const int64_t step : {1, 2, 3}) Write(step, step);
  EXPECT_THAT(ListCheckpoints(manifests_, All), IsOkAndHolds(SizeIs(3)));
  requests_.clear();
  EXPECT_THAT(ListCheckpoints(manifests_, All), IsOkAndHolds(SizeIs(3)));
  EXPECT_THAT(requests_, ElementsAre("list", "look", "look", "look"));
  Write(2, 20);
  Write(4, 4);
  ASSERT_OK_AND_ASSIGN(const auto listing, ListCheckpoints(manifests_, All));
  ASSERT_THAT(listing, SizeIs(4));
  EXPECT_EQ(listing[1].created_unix_micros, 20);
  EXPECT_EQ(listing[3].step, 4);
}

TEST_F(KnownManifestsTest, ManyOlderOnesAreNotLookedAtAgain) {
  for (int64_t step = 1; step <= 100; ++step) Write(step, step);
  EXPECT_THAT(ListCheckpoints(manifests_, All), IsOkAndHolds(SizeIs(100)));
  requests_.clear();
  EXPECT_THAT(ListCheckpoints(manifests_, All), IsOkAndHolds(SizeIs(100)));
  EXPECT_THAT(requests_, SizeIs(1 + 8));
}

// A run has gone back far, and the newest steps are still there.
TEST_F(KnownManifestsTest, AnOlderOneThatIsReplacedIsFoundInTurn) {
  for (int64_t step = 1; step <= 20; ++step) Write(step, step);
  EXPECT_THAT(ListCheckpoints(manifests_, All), IsOkAndHolds(SizeIs(20)));
  Write(5, 1000);
  const auto is_replaced = [](const durable::CheckpointManifest& manifest) {
    return manifest.created_unix_micros() == 1000;
  };
  size_t found = 0;
  for (int look = 0; look < 20 && found == 0; ++look) {
    ASSERT_OK_AND_ASSIGN(const auto listing,
                         ListCheckpoints(manifests_, is_replaced));
    found = listing.size();
  }
  EXPECT_EQ(found, 1u);
}

TEST_F(KnownManifestsTest, OneThatIsGoneIsForgotten) {
  Write(1, 10);
  EXPECT_OK(manifests_.Read(1));
  ASSERT_OK(files_.Remove(CheckpointStore(kRun).PathOf(1) + "/MANIFEST"));
  EXPECT_THAT(manifests_.Read(1), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_OK(manifests_.Recall(1));
  EXPECT_THAT(ListCheckpoints(manifests_, All), IsOkAndHolds(SizeIs(0)));
  EXPECT_THAT(manifests_.Recall(1), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(KnownManifestsTest, DamageIsKnownUntilItIsMended) {
  const std::string path = CheckpointStore(kRun).PathOf(1) + "/MANIFEST";
  files_.Put(path, "damaged");
  EXPECT_THAT(manifests_.Read(1), StatusIs(absl::StatusCode::kDataLoss));
  requests_.clear();
  EXPECT_THAT(manifests_.Read(1), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(requests_, ElementsAre("look"));
  Write(1, 10);
  EXPECT_OK(manifests_.Read(1));
}

}  // namespace
}  // namespace parasol
