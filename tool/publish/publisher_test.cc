#include "tool/publish/publisher.h"

#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/testing/disk_faults.h"
#include "storage/testing/file_size_limit.h"
#include "tool/publish/testing/publisher_fixture.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class PublisherTest : public PublisherFixture {
 protected:
  // Publishes the model's next step in a process of its own, which is killed at
  // its fsync of this number. Returns true if it was.
  bool PublishNextInProcess(int fsyncs) {
    const pid_t child = fork();
    if (child == 0) {
      KillAtFsync(fsyncs);
      absl::StatusOr<Publisher> publisher = Publisher::Open(Options());
      const bool ok = publisher.ok() &&
                      publisher->Publish(model_.PathIn(root_ + "/next")).ok();
      _exit(ok ? 0 : 1);
    }
    int end = 0;
    EXPECT_EQ(waitpid(child, &end, 0), child);
    const bool was_killed = WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL;
    EXPECT_TRUE(was_killed || (WIFEXITED(end) && WEXITSTATUS(end) == 0));
    return was_killed;
  }

  // Expects that each version has the files that its manifest names, whole.
  void ExpectWholeVersions() const {
    if (!fs::exists(Out())) return;
    for (const auto& entry : fs::directory_iterator(Out())) {
      if (entry.path().filename() == ".publisher") continue;
      for (const char* name : {"manifest.json", "model.safetensors.index.json",
                               "model-00001-of-00001.safetensors"}) {
        EXPECT_TRUE(fs::exists(entry.path() / name)) << entry.path();
      }
      const std::string path = entry.path() / "manifest.json";
      const auto manifest = ParseManifest(TextOf(path), path);
      ASSERT_OK(manifest);
      EXPECT_EQ(manifest->files.size(), 2);
      for (const auto& [name, bytes] : manifest->files) {
        EXPECT_EQ(fs::file_size(entry.path() / name), bytes) << path;
      }
    }
  }
};

TEST_F(PublisherTest, FirstVersionIsWholeWithAnIndex) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK_AND_ASSIGN(const Publication publication,
                       PublishNext(publisher, 0));
  EXPECT_EQ(publication.version.format, VersionFormat::kFull);
  const auto tensors =
      TensorsAt(Out("weight_v000001/model-00001-of-00001.safetensors"));
  EXPECT_EQ(tensors.at("dense/kernel"), KernelBytes());
  EXPECT_EQ(tensors.size(), 3);  // and the table's ids and rows
  const Json index =
      Json::parse(TextOf(Out("weight_v000001/model.safetensors.index.json")));
  EXPECT_EQ(index["metadata"]["total_size"], 4 * 8000 + 2 * (8 + 8));
  EXPECT_FALSE(index["metadata"].contains("delta_encoding"));
  EXPECT_EQ(index["weight_map"]["users/rows"],
            "model-00001-of-00001.safetensors");
  const Json manifest =
      Json::parse(TextOf(Out("weight_v000001/manifest.json")));
  EXPECT_EQ(manifest["step"], 110);
  EXPECT_EQ(manifest["base_version"], nullptr);
  EXPECT_EQ(manifest["format"], "full");
}

TEST_F(PublisherTest, SmallestFormIsWritten) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  EXPECT_OK(PublishNext(publisher, 0));
  uint64_t before = 0;
  std::set<VersionFormat> formats;
  for (const int changed : {0, 1, 20, 400, 3000}) {
    ASSERT_OK_AND_ASSIGN(const Publication publication,
                         PublishNext(publisher, changed));
    EXPECT_EQ(publication.version.base, publication.version.version - 1);
    EXPECT_GT(publication.file_bytes, before);
    EXPECT_LT(publication.file_bytes, publication.state_bytes);
    before = publication.file_bytes;
    formats.insert(publication.version.format);
    const Json index = Json::parse(TextOf(
        absl::StrCat(Out(), "/", VersionName(publication.version.version),
                     "/model.safetensors.index.json")));
    EXPECT_EQ(index["metadata"]["delta_encoding"],
              std::string(NameOf(publication.version.format)));
    EXPECT_EQ(index["metadata"]["base_version"],
              absl::StrCat("00000", publication.version.version - 1));
    EXPECT_EQ(index["weight_map"].size(), changed > 0 ? 1 : 0);
  }
  EXPECT_EQ(formats.size(), 2);
  // All values are new, in a way that does not compress.
  model_.users = {{8, {0.3f, 0.7f, 0, 0, 0, 0}}, {9, {0.1f, 2.3f, 0, 0, 0, 0}}};
  std::mt19937 bits(1);
  for (float& value : model_.kernel) {
    value = std::bit_cast<float>(static_cast<uint32_t>(bits()));
  }
  ASSERT_OK_AND_ASSIGN(const Publication whole, PublishNext(publisher, 0));
  EXPECT_EQ(whole.version.format, VersionFormat::kFull);
}

TEST_F(PublisherTest, EveryFewVersionsOneIsWhole) {
  Publisher::Options options = Options();
  options.full_every = 3;
  std::vector<bool> whole;
  for (int i = 0; i < 7; ++i) {
    // Each time another process.
    ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(options));
    ASSERT_OK_AND_ASSIGN(const Publication publication,
                         PublishNext(publisher, 5));
    EXPECT_EQ(publication.version.version, i + 1);
    whole.push_back(!publication.version.base);
  }
  EXPECT_THAT(whole, ElementsAre(true, false, false, true, false, false, true));
}

TEST_F(PublisherTest, OldVersionsGoButNotThoseThatOthersBuildOn) {
  Publisher::Options options = Options();
  options.full_every = 3;
  options.max_to_keep = 2;
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(options));
  for (int i = 0; i < 6; ++i) ASSERT_OK(PublishNext(publisher, 5));
  EXPECT_FALSE(fs::exists(Out("weight_v000003")));
  EXPECT_TRUE(fs::exists(Out("weight_v000004")));
  EXPECT_TRUE(fs::exists(Out("weight_v000006")));
  ASSERT_OK(PublishNext(publisher, 5));
  EXPECT_TRUE(fs::exists(Out("weight_v000004")));
  ASSERT_OK(PublishNext(publisher, 5));
  EXPECT_FALSE(fs::exists(Out("weight_v000006")));
  EXPECT_TRUE(fs::exists(Out("weight_v000007")));
}

TEST_F(PublisherTest, TableWithMoreRowsMakesAVersionWhole) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK(PublishNext(publisher, 0));
  model_.users[9] = {1, 2, 0, 0, 0, 0};
  ASSERT_OK_AND_ASSIGN(const Publication publication,
                       PublishNext(publisher, 1));
  EXPECT_EQ(publication.version.format, VersionFormat::kFull);
  model_.users[9][0] = 5;
  ASSERT_OK_AND_ASSIGN(const Publication next, PublishNext(publisher, 1));
  EXPECT_NE(next.version.format, VersionFormat::kFull);
}

TEST_F(PublisherTest, WhatIsThereAlreadyIsNotWrittenAgain) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK(PublishNext(publisher, 0));
  ASSERT_OK(PublishNext(publisher, 3));
  ASSERT_OK_AND_ASSIGN(const Publication again, Publish(publisher));
  EXPECT_TRUE(again.was_there);
  EXPECT_FALSE(fs::exists(Out("weight_v000003")));
  // Only the newest version's state stays.
  EXPECT_EQ(std::distance(fs::directory_iterator(Out(".publisher")),
                          fs::directory_iterator()),
            1);
  model_.kernel[0] = 17;
  EXPECT_THAT(Publish(publisher).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("other bytes")));
}

// Asynchronous jobs have pushes behind the step of the last checkpoint but one.
TEST_F(PublisherTest, JobsLastStepMayBeThereWithOtherBytes) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK(PublishNext(publisher, 0));
  model_.kernel[0] = 17;
  model_.is_final = true;
  ASSERT_OK_AND_ASSIGN(const Publication last, Publish(publisher));
  EXPECT_FALSE(last.was_there);
  EXPECT_EQ(last.version.version, 2);
  EXPECT_EQ(last.version.base, 1);
  EXPECT_EQ(last.version.step, model_.step);
}

// Nobody can rebuild a version whose base has gone.
TEST_F(PublisherTest, VersionThatCannotBeRebuiltIsPublishedAgainWhole) {
  for (const char* gone : {"weight_v000001", "weight_v000001/manifest.json"}) {
    SCOPED_TRACE(gone);
    fs::remove_all(Out());
    ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
    ASSERT_OK(PublishNext(publisher, 0));
    ASSERT_OK_AND_ASSIGN(const Publication delta, PublishNext(publisher, 3));
    EXPECT_EQ(delta.version.base, 1);
    fs::remove_all(Out(gone));
    ASSERT_OK_AND_ASSIGN(const Publication again, Publish(publisher));
    EXPECT_FALSE(again.was_there);
    EXPECT_EQ(again.version.version, 3);
    EXPECT_EQ(again.version.format, VersionFormat::kFull);
    ASSERT_OK_AND_ASSIGN(const Publication third, Publish(publisher));
    EXPECT_TRUE(third.was_there);
  }
}

TEST_F(PublisherTest, WrongCheckpointsAndDirectoriesAreRefused) {
  {
    ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
    ASSERT_OK(PublishNext(publisher, 0));
    model_.step -= 20;
    EXPECT_THAT(Publish(publisher).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("weight_v000001: is of step")));
    model_.step += 100;
    model_.run_id = "another";
    EXPECT_THAT(
        Publish(publisher).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("run another")));
    EXPECT_THAT(
        Publisher::Open(Options()).status(),
        StatusIs(absl::StatusCode::kUnavailable, HasSubstr("another process")));
  }
  Publisher::Options options = Options();
  options.type = ElementType::kBfloat16;
  EXPECT_THAT(Publisher::Open(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--dtype=float32")));
  EXPECT_FALSE(fs::exists(Out("weight_v000002")));
}

// A base that is gone, or has other bytes, makes the next version whole.
TEST_F(PublisherTest, DeltaIsWrittenOnlyOnTheNewestVersionsBytes) {
  const std::map<std::string, std::function<void()>> harms = {
      {"state gone",
       [&] { fs::remove(Out(".publisher/weight_v000002.safetensors")); }},
      {"state altered",
       [&] {
         std::fstream file(Out(".publisher/weight_v000002.safetensors"));
         file.seekp(-9, std::ios::end);
         file << "x";
       }},
      {"version gone", [&] { fs::remove_all(Out("weight_v000001")); }},
      {"version cut", [&] {
         fs::resize_file(Out("weight_v000001/model-00001-of-00001.safetensors"),
                         1000);
       }}};
  for (const auto& [what, harm] : harms) {
    SCOPED_TRACE(what);
    fs::remove_all(Out());
    ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
    ASSERT_OK(PublishNext(publisher, 0));
    ASSERT_OK(PublishNext(publisher, 3));
    harm();
    ASSERT_OK_AND_ASSIGN(const Publication next, PublishNext(publisher, 3));
    EXPECT_EQ(next.version.format, VersionFormat::kFull);
    EXPECT_EQ(next.version.version, 3);
  }
}

// It opens, and the disk refuses what is behind its header.
TEST_F(PublisherTest, BaseThatCannotBeReadMakesAVersionWhole) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK(PublishNext(publisher, 0));
  ASSERT_OK(PublishNext(publisher, 3));
  const std::string base = Out(".publisher/weight_v000002.safetensors");
  FailReadsOf(base, EIO, /*first=*/9);
  testing::internal::CaptureStderr();
  const absl::StatusOr<Publication> next = PublishNext(publisher, 3);
  const std::string log = testing::internal::GetCapturedStderr();
  FailReadsOf("", 0);
  ASSERT_OK(next);
  EXPECT_EQ(next->version.format, VersionFormat::kFull);
  EXPECT_THAT(log,
              AllOf(HasSubstr(base), HasSubstr("weight_v000003, is whole")));
  EXPECT_EQ(TensorsAt(Out("weight_v000003/model-00001-of-00001.safetensors"))
                .at("dense/kernel"),
            KernelBytes());
  ASSERT_OK_AND_ASSIGN(const Publication delta, PublishNext(publisher, 3));
  EXPECT_EQ(delta.version.base, 3);
}

// What fails once the version has its name is said, and is no error.
TEST_F(PublisherTest, VersionThatHasItsNameIsPublished) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK(PublishNext(publisher, 0));
  FailFsyncOf(Out());
  testing::internal::CaptureStderr();
  const absl::StatusOr<Publication> next = PublishNext(publisher, 3);
  const std::string log = testing::internal::GetCapturedStderr();
  FailFsyncOf("");
  ASSERT_OK(next);
  EXPECT_FALSE(next->was_there);
  EXPECT_EQ(next->version.version, 2);
  EXPECT_THAT(log, HasSubstr(Out()));
  ASSERT_OK_AND_ASSIGN(const Publication delta, PublishNext(publisher, 3));
  EXPECT_EQ(delta.version.base, 2);
}

TEST_F(PublisherTest, OldVersionMayBeRemovedByHand) {
  Publisher::Options options = Options();
  options.full_every = 1;
  options.max_to_keep = 2;
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(options));
  for (int i = 0; i < 2; ++i) ASSERT_OK(PublishNext(publisher, 5));
  fs::remove_all(Out("weight_v000001"));
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) EXPECT_OK(PublishNext(publisher, 5));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(fs::exists(Out("weight_v000002")));
  EXPECT_TRUE(fs::exists(Out("weight_v000003")));
  EXPECT_TRUE(fs::exists(Out("weight_v000004")));
}

TEST_F(PublisherTest, FullDiskPublishesNothingAndLeavesNothing) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK(PublishNext(publisher, 0));
  model_.step += 10;
  ASSERT_OK(model_.Write(root_ + "/ckpt"));
  {
    const FileSizeLimit full(20000);
    EXPECT_THAT(
        publisher.Publish(model_.PathIn(root_ + "/ckpt")).status(),
        StatusIs(absl::StatusCode::kResourceExhausted,
                 AllOf(HasSubstr(Out(".publisher")), HasSubstr("make room"))));
  }
  EXPECT_FALSE(fs::exists(Out("weight_v000002")));
  EXPECT_TRUE(fs::is_empty(Out(".publisher")));
  ASSERT_OK_AND_ASSIGN(const Publication next, Publish(publisher));
  EXPECT_EQ(next.version.version, 2);
}

// The manifest is the last file, and the largest of a small model.
TEST_F(PublisherTest, NoVersionIsThereBeforeItsManifest) {
  model_ = ModelCheckpoint();
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK(model_.Write(root_ + "/ckpt"));
  const std::string checkpoint = model_.PathIn(root_ + "/ckpt");
  {
    const FileSizeLimit full(700);
    EXPECT_THAT(publisher.Publish(checkpoint).status(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("manifest.json")));
  }
  EXPECT_FALSE(fs::exists(Out("weight_v000001")));
  EXPECT_TRUE(fs::is_empty(Out(".publisher")));
  EXPECT_OK(publisher.Publish(checkpoint));
}

// A publisher that is killed at each of its steps, before the first version and
// behind a whole one and a delta: the versions that are there are whole, and
// the next process goes on behind them.
TEST_F(PublisherTest, KilledOneLeavesWholeVersions) {
  int unfinished = 0;
  int named = 0;
  for (const int before : {0, 1, 2}) {
    bool was_killed = true;
    for (int fsyncs = 1; was_killed; ++fsyncs) {
      SCOPED_TRACE(absl::StrCat(before, " versions, killed at fsync ", fsyncs));
      ASSERT_LT(fsyncs, 100);
      fs::remove_all(Out());
      for (int i = 0; i < before; ++i) {
        ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
        ASSERT_OK(PublishNext(publisher, 5));
      }
      model_.step += 10;
      model_.kernel[fsyncs] += 1;
      ASSERT_OK(model_.Write(root_ + "/next"));
      was_killed = PublishNextInProcess(fsyncs);
      const std::string next = VersionName(before + 1);
      if (was_killed && fs::exists(Out(".publisher/next.safetensors"))) {
        ++unfinished;
      }
      const bool is_named = fs::exists(Out(next));
      if (was_killed && is_named) ++named;
      EXPECT_TRUE(was_killed || is_named);
      ExpectWholeVersions();
      ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
      ASSERT_OK_AND_ASSIGN(const Publication last, PublishNext(publisher, 5));
      EXPECT_EQ(last.version.version, before + (is_named ? 2 : 1));
      ExpectWholeVersions();
    }
    if (!PythonLacks("numpy, zstandard").empty()) continue;
    const Received received = Receive();
    ASSERT_EQ(received.code, 0) << received.errors;
    EXPECT_EQ(received.tensors.at("dense/kernel"), KernelBytes());
  }
  EXPECT_GT(unfinished, 6);
  EXPECT_EQ(named, 3);
}

// The bits of numpy's own rounding: to nearest, ties to even.
TEST_F(PublisherTest, Bfloat16IsRoundedToNearest) {
  SKIP_WITHOUT_PYTHON();
  if (!PythonLacks("ml_dtypes").empty()) GTEST_SKIP() << "no ml_dtypes";
  model_.kernel[0] = std::bit_cast<float>(0x3f808000);  // a tie
  model_.kernel[1] = std::bit_cast<float>(0x3f818000);
  model_.kernel[2] = std::bit_cast<float>(0x7f800000);
  model_.kernel[3] = std::bit_cast<float>(0x00000001);
  Publisher::Options options = Options();
  options.type = ElementType::kBfloat16;
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(options));
  ASSERT_OK(PublishNext(publisher, 0));
  ASSERT_OK(PublishNext(publisher, 500));
  const Received received = Receive();
  ASSERT_EQ(received.code, 0) << received.errors;
  std::ofstream(root_ + "/kernel") << KernelBytes();
  const CompletedProcess rounded = RunPython(
      "import ml_dtypes, numpy, sys\n"
      "values = numpy.fromfile(sys.argv[1], '<f4')\n"
      "values.astype(ml_dtypes.bfloat16).tofile(sys.argv[1])\n",
      {root_ + "/kernel"});
  ASSERT_EQ(rounded.end.code(), 0) << rounded.standard_error;
  EXPECT_EQ(received.tensors.at("dense/kernel"), TextOf(root_ + "/kernel"));
  EXPECT_EQ(received.tensors.at("users/ids").size(), 2 * sizeof(uint64_t));
}

}  // namespace
}  // namespace parasol
