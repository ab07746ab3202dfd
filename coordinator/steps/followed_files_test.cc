#include "coordinator/steps/followed_files.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatchSize = 4;

std::string NameOf(int64_t number) { return absl::StrFormat("%06d", number); }

void AddFile(FollowedFiles& files, int64_t number, int64_t records) {
  ASSERT_OK(
      files.Add(files.Next(NameOf(number), 10 * records, records, kBatchSize)));
}

// Returns the paths of the files that a worker hears of.
std::vector<std::string> TellFrom(const FollowedFiles& files, int64_t known) {
  wire::ClaimStepsResponse response;
  files.AddTo(known, response);
  std::vector<std::string> paths;
  for (const auto& file : response.file()) paths.push_back(file.path());
  return paths;
}

durable::FollowedSet SetOf(const FollowedFiles& files) {
  durable::FollowedSet set;
  files.AddTo(set);
  return set;
}

TEST(FollowedFiles, BatchesGoThroughTheFilesAndHaveRecordsOfOne) {
  FollowedFiles files;
  AddFile(files, 1, 9);
  AddFile(files, 2, 0);
  AddFile(files, 3, 8);
  AddFile(files, 4, 1);
  EXPECT_EQ(files.batches(), 3 + 2 + 1);
  EXPECT_EQ(files.last_path(), NameOf(4));
  wire::ClaimStepsResponse told;
  files.AddTo(0, told);
  ASSERT_EQ(told.file_size(), 3) << "one has no records";
  EXPECT_EQ(told.file(1).path(), NameOf(3));
  EXPECT_EQ(told.file(1).first_batch(), 3);
  EXPECT_EQ(told.file(1).batches(), 2);
  EXPECT_EQ(told.file(1).bytes(), 80);
  EXPECT_EQ(told.file(1).records(), 8);
}

TEST(FollowedFiles, AWorkerHearsOfWhatItDoesNotKnow) {
  FollowedFiles files;
  for (int i = 1; i <= 3; ++i) AddFile(files, i, 8);
  EXPECT_THAT(TellFrom(files, 0),
              testing::ElementsAre(NameOf(1), NameOf(2), NameOf(3)));
  EXPECT_THAT(TellFrom(files, 4), testing::ElementsAre(NameOf(3)));
  EXPECT_THAT(TellFrom(files, 6), testing::IsEmpty());
}

TEST(FollowedFiles, AFileIsKeptUntilAllOfItsBatchesAreTrained) {
  FollowedFiles files;
  for (int i = 1; i <= 3; ++i) AddFile(files, i, 8);
  files.Forget(3);
  EXPECT_EQ(files.trained(), 3);
  EXPECT_THAT(TellFrom(files, 0), testing::ElementsAre(NameOf(2), NameOf(3)));
  files.Forget(2);
  EXPECT_EQ(files.trained(), 3) << "it never falls";
  files.Forget(100);
  EXPECT_EQ(files.trained(), 6) << "no more than there are";
  EXPECT_EQ(files.last_path(), NameOf(3));
}

TEST(FollowedFiles, WhatIsNotNextIsRefused) {
  FollowedFiles files;
  AddFile(files, 5, 8);
  const durable::FollowedFile good = files.Next(NameOf(6), 80, 8, kBatchSize);
  const auto refused = [&](auto change) {
    durable::FollowedFile file = good;
    change(file);
    EXPECT_THAT(files.Add(file), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr(file.path())));
  };
  refused([](auto& file) { file.set_path(NameOf(5)); });
  refused([](auto& file) { file.set_path(NameOf(4)); });
  refused([](auto& file) { file.set_first_batch(3); });
  refused([](auto& file) { file.set_first_batch(1); });
  refused([](auto& file) { file.set_batches(0); });
  refused([](auto& file) { file.set_batches(9); });
  refused([](auto& file) { file.set_records(-1); });
  refused([](auto& file) { file.set_bytes(-1); });
  refused([](auto& file) {
    file.set_records(int64_t{1} << 48);
    file.set_batches(INT64_MAX);
  });
  EXPECT_OK(files.Add(good));
}

TEST(FollowedFiles, IsFullWithSoManyFiles) {
  FollowedFiles files;
  for (size_t i = 1; i <= FollowedFiles::kMaxKept; ++i) {
    EXPECT_FALSE(files.IsFull());
    AddFile(files, i, 8);
  }
  EXPECT_TRUE(files.IsFull());
  files.Forget(2);
  EXPECT_FALSE(files.IsFull());
}

TEST(FollowedFiles, ACheckpointHasThem) {
  FollowedFiles files;
  for (int i = 1; i <= 3; ++i) AddFile(files, i, 8);
  AddFile(files, 4, 0);
  files.Forget(3);
  ASSERT_OK_AND_ASSIGN(const FollowedFiles resumed,
                       FollowedFiles::Of(SetOf(files)));
  EXPECT_EQ(resumed.batches(), 6);
  EXPECT_EQ(resumed.last_path(), NameOf(4));
  EXPECT_EQ(TellFrom(resumed, 0), TellFrom(files, 0));
  files.Forget(6);
  ASSERT_OK_AND_ASSIGN(const FollowedFiles trained,
                       FollowedFiles::Of(SetOf(files)));
  EXPECT_EQ(trained.batches(), 6);
  EXPECT_EQ(trained.last_path(), NameOf(4));
}

TEST(FollowedFiles, ADamagedCheckpointIsRefused) {
  FollowedFiles files;
  for (int i = 1; i <= 3; ++i) AddFile(files, i, 8);
  const durable::FollowedSet good = SetOf(files);
  const auto refused = [&](auto change) {
    durable::FollowedSet set = good;
    change(set);
    EXPECT_THAT(FollowedFiles::Of(set).status(),
                StatusIs(absl::StatusCode::kDataLoss));
  };
  refused([](auto& set) { set.set_batches(-1); });
  refused([](auto& set) { set.set_batches(5); });
  refused([](auto& set) { set.set_batches(INT64_MAX); });
  refused([](auto& set) { set.set_last_path(NameOf(2)); });
  refused([](auto& set) { set.mutable_file(1)->set_first_batch(3); });
  refused([](auto& set) { set.mutable_file(0)->set_first_batch(-2); });
  refused([](auto& set) { set.mutable_file()->SwapElements(0, 1); });
}

// The model: a list of (file, batch within it).
TEST(FollowedFiles, GivesEachBatchTheFileThatAListGives) {
  for (int seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    FollowedFiles files;
    std::vector<std::pair<std::string, int64_t>> model;
    std::vector<int64_t> sizes;  // records by batch
    int64_t trained = 0;
    for (int i = 1; i < 40; ++i) {
      const int64_t records = random() % 3 == 0 ? 0 : random() % 30;
      AddFile(files, i, records);
      for (int64_t left = records; left > 0; left -= kBatchSize) {
        model.emplace_back(NameOf(i), (records - left) / kBatchSize);
        sizes.push_back(std::min(left, kBatchSize));
      }
      if (random() % 2 == 0 && !model.empty()) {
        trained = std::max<int64_t>(trained, random() % model.size());
        files.Forget(trained);
      }
      if (random() % 4 == 0) files = FollowedFiles::Of(SetOf(files)).value();
      const auto batches = static_cast<int64_t>(model.size());
      ASSERT_EQ(files.batches(), batches);
      const int64_t known = random() % (batches + 1);
      wire::ClaimStepsResponse told;
      files.AddTo(known, told);
      for (int64_t b = std::max(known, files.trained()); b < batches; ++b) {
        const auto file = std::find_if(
            told.file().begin(), told.file().end(), [b](const auto& f) {
              return f.first_batch() <= b && b < f.first_batch() + f.batches();
            });
        ASSERT_NE(file, told.file().end()) << b;
        ASSERT_EQ(std::make_pair(file->path(), b - file->first_batch()),
                  model[b]);
      }
      int64_t records_left = 0;
      const int64_t last = random() % (batches - files.trained() + 1);
      for (int64_t b = batches - last; b < batches; ++b) {
        records_left += sizes[b];
      }
      const int64_t about = files.RecordsOfLast(last);
      EXPECT_LE(std::abs(about - records_left), kBatchSize * 12);
    }
  }
}

}  // namespace
}  // namespace parasol
