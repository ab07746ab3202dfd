#include "cluster/object/store_files.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "base/uri/uri_path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/object/testing/object_servers.h"
#include "ml/input/testing/arrow_environment.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kElements = 3'000'000;  // 12 MB, which are sent in parts

// A clock on which pauses take no time.
class EagerClock final : public SimulatedClock {
 public:
  bool AwaitWithTimeout(absl::Mutex& /*mu*/, const absl::Condition& condition,
                        absl::Duration timeout) override {
    Advance(timeout);
    return condition.Eval();
  }
};

class StoreFilesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string lacks = ArrowLacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    server_ = StartObjectServer(GetParam(), "store_files_server");
    ObjectCache::OfProcess().SetDirectory(folder_);
    fs::remove_all(folder_);
    UseRemoteFiles(&files_);
    run_ = server_->Uri("run");
  }
  void TearDown() override { UseRemoteFiles(nullptr); }

  // Writes a checkpoint whose elements are `value`.
  absl::Status WriteCheckpoint(int64_t step, float value) {
    ASSIGN_OR_RETURN(CheckpointStore store,
                     CheckpointStore::OpenForWriting(run_));
    ASSIGN_OR_RETURN(const std::string working, store.Begin(step));
    durable::CheckpointManifest manifest;
    manifest.set_run_id("run");
    manifest.set_global_step(step);
    auto& variable = *manifest.add_variable();
    variable.set_name("w");
    variable.mutable_shape()->Add(kElements);
    const absl::Status status = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(
          const auto writer,
          ShardWriter::Create(CheckpointStore::PathInWorking(
              working, CheckpointStore::NameInWorking(working, "s.sst"))));
      const std::vector<float> values(kElements, value);
      RETURN_IF_ERROR(writer->AddElements("w", 0, 0, /*updates=*/1, values));
      ASSIGN_OR_RETURN(*manifest.add_file(), writer->Finish());
      return store.Commit(working, manifest);
    }();
    if (!status.ok()) {
      store.Abandon(working);
      return status;
    }
    return store.Prune(/*max_to_keep=*/1, step);
  }

  absl::StatusOr<float> NewestValue() const {
    const CheckpointStore store(run_);
    ASSIGN_OR_RETURN(const std::optional<int64_t> step, store.NewestComplete());
    if (!step.has_value()) return absl::NotFoundError("none");
    RETURN_IF_ERROR(store.Verify(*step));
    ASSIGN_OR_RETURN(const auto reader,
                     CheckpointReader::Open(store.PathOf(*step)));
    std::vector<float> values(kElements);
    RETURN_IF_ERROR(
        reader->ReadElements("w", 0, 0, absl::MakeSpan(values)).status());
    RETURN_IF_ERROR(reader->Verify());
    return values.back();
  }

  std::vector<std::string> KeysOf(const std::string& folder) const {
    std::vector<std::string> keys;
    for (const auto& entry :
         fs::recursive_directory_iterator(server_->PathOf(folder))) {
      if (entry.is_regular_file()) keys.push_back(entry.path().filename());
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  const std::string folder_ = testing::TempDir() + "/on_their_way";
  EagerClock clock_;
  StoreFiles files_{clock_};
  std::unique_ptr<ObjectServer> server_;
  std::string run_;
};

TEST_P(StoreFilesTest, ACheckpointIsKeptInABucket) {
  ASSERT_OK(WriteCheckpoint(1, 10));
  ASSERT_OK(WriteCheckpoint(2, 20));
  EXPECT_THAT(CheckpointStore(run_).ListSteps(), IsOkAndHolds(ElementsAre(2)));
  EXPECT_THAT(NewestValue(), IsOkAndHolds(20));
  EXPECT_THAT(KeysOf("run"), SizeIs(2));
  // Nothing stays on the machine.
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_P(StoreFilesTest, AServerThatMisbehavesTearsNothing) {
  ASSERT_OK(WriteCheckpoint(1, 10));
  float value = 20;
  for (const std::string& fault :
       {server_->Fault("PUT .*", "503", 3),
        server_->Fault("PUT .*sst", "lost", 1, /*skip=*/1),
        server_->Fault("POST .*sst", "lost", 1, /*skip=*/1),
        server_->Fault("PUT .*MANIFEST", "lost"),
        server_->Fault("PUT .*MANIFEST", "late"),
        server_->Fault("DELETE .*", "lost", 2),
        server_->Fault("GET .*", "cut", 2),
        server_->Fault("GET .*sst", "short", 2),
        server_->Fault("GET /b/?", "500", 2),
        server_->Fault("(GET|HEAD) .*", "503", 2)}) {
    SCOPED_TRACE(fault);
    server_->SetFaults({fault});
    ASSERT_OK(WriteCheckpoint(static_cast<int64_t>(value), value));
    EXPECT_THAT(NewestValue(), IsOkAndHolds(value));
    EXPECT_THAT(KeysOf("run"), SizeIs(2));
    ++value;
  }
}

TEST_P(StoreFilesTest, ACheckpointThatFailsLeavesTheOneBefore) {
  ASSERT_OK(WriteCheckpoint(1, 10));
  server_->SetFaults({server_->Fault("PUT .*sst", "403", -1)});
  EXPECT_THAT(
      WriteCheckpoint(2, 20),
      StatusIs(absl::StatusCode::kPermissionDenied,
               AllOf(HasSubstr(server_->Name("run/ckpt-000000000002/s-")),
                     HasSubstr(server_->Credentials()))));
  EXPECT_THAT(NewestValue(), IsOkAndHolds(10));
  // What Google's library tries again itself would take it a second each time.
  server_->SetFaults({server_->Fault("PUT .*MANIFEST",
                                     GetParam() == "S3" ? "503" : "412", -1)});
  EXPECT_THAT(
      WriteCheckpoint(2, 20),
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr(server_->Name("run/ckpt-000000000002/MANIFEST"))));
  server_->SetFaults({});
  EXPECT_THAT(NewestValue(), IsOkAndHolds(10));
  EXPECT_THAT(KeysOf("run"), SizeIs(2));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_P(StoreFilesTest, WhatCantBeAPlaceOfCheckpointsIsNamed) {
  EXPECT_THAT(CheckpointStore::OpenForWriting("hdfs://h:1/run").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("hdfs://, where a file can be seen")));
  EXPECT_THAT(CheckpointStore::OpenForWriting("ftp://h/run").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ftp")));
  EXPECT_THAT(
      CheckpointStore::OpenForWriting(server_->Uri("run", "none")).status(),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("checkpoint directory"),
                     HasSubstr(server_->Name("run", "none")),
                     HasSubstr("no such object or bucket"))));
}

TEST_P(StoreFilesTest, AFileThatChangesIsReadAsAWhole) {
  const std::string uri = server_->Put("run/x", std::string(100, 'a'));
  server_->SetFaults({server_->Fault("GET /b/run/x", "replace")});
  ASSERT_OK_AND_ASSIGN(const std::string bytes, files_.Read(uri, 1000));
  EXPECT_NE(bytes, std::string(100, 'a'));
  EXPECT_THAT(bytes, SizeIs(100));
  EXPECT_THAT(files_.Read(uri, 9), IsOkAndHolds(SizeIs(10)));
}

INSTANTIATE_TEST_SUITE_P(Servers, StoreFilesTest, ObjectServerKinds(),
                         ObjectServerName);

}  // namespace
}  // namespace parasol
