#include "chief/chief_task.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/process.h"
#include "base/status_matchers.h"
#include "chief/kubeflow/testing/https_stub.h"
#include "cluster/client/chief_client.h"
#include "cluster/rpc/server.h"
#include "ml/model/graph.h"
#include "storage/directory_lock.h"
#include "storage/directory_owner.h"
#include "storage/testing/disk_faults.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ChiefTaskTest : public testing::Test {
 protected:
  ChiefTaskTest() {
    std::filesystem::remove_all(directory_);
    job::Job& job = options_.job;
    job.mutable_model()->add_input_shape(4);
    job::Layer* layer = job.mutable_model()->add_layer();
    layer->set_name("dense");
    layer->mutable_dense()->set_units(2);
    layer->mutable_dense()->set_use_bias(true);
    job.mutable_model()
        ->mutable_loss()
        ->mutable_sparse_categorical_crossentropy();
    job.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.1);
    job.mutable_end()->set_steps(10);
    job.mutable_parameter_server()->set_placement(
        job::ParameterServerStrategy::BALANCED_BYTES);
    job.mutable_parameter_server()->mutable_fixed_shards()->set_shards(1);
    options_.variables = ResolveGraph(job.model())->variables;
    options_.ps = {{0, "127.0.0.1:1"}};
    options_.workers = {{0, "127.0.0.1:2"}};
    options_.listen_address = "127.0.0.1:0";
    options_.checkpoint_directory = directory_;
  }

  absl::StatusOr<std::unique_ptr<ChiefTask>> Start() {
    return ChiefTask::Start(options_, Clock::Real(), metrics_);
  }
  // The only thing that a chief of this job finds in its directory.
  void WriteCheckpoint(const durable::CheckpointManifest& manifest) {
    auto store = CheckpointStore::OpenForWriting(directory_);
    ASSERT_OK(store);
    ASSERT_OK_AND_ASSIGN(std::string working,
                         store->Begin(manifest.global_step()));
    ASSERT_OK(store->Commit(working, manifest));
  }
  durable::CheckpointManifest FinalManifest() {
    durable::CheckpointManifest manifest;
    manifest.set_global_step(10);
    manifest.set_run_id("run-a");
    *manifest.mutable_job() = options_.job;
    manifest.set_final(true);
    auto* kernel = manifest.add_variable();
    kernel->set_name("dense/kernel");
    kernel->add_shape(4);
    kernel->add_shape(2);
    auto* bias = manifest.add_variable();
    bias->set_name("dense/bias");
    bias->add_shape(2);
    return manifest;
  }

  const std::string directory_ = testing::TempDir() + "/chief_task_test";
  ChiefTaskOptions options_;
  MetricsRegistry metrics_;
};

TEST_F(ChiefTaskTest, AnswersItsTasksOverGrpc) {
  ASSERT_OK_AND_ASSIGN(auto task, Start());
  auto client = ChiefClient::Create(absl::StrCat("127.0.0.1:", task->port()),
                                    absl::Seconds(10));
  wire::RegisterRequest request;
  request.mutable_task()->set_role("worker");
  request.mutable_task()->set_incarnation(7);
  ASSERT_OK_AND_ASSIGN(auto registered, client->Register(request));
  EXPECT_EQ(registered.job().end().steps(), 10);
  EXPECT_EQ(registered.checkpoint_directory(), directory_);
  ASSERT_OK_AND_ASSIGN(auto status, client->GetStatus());
  EXPECT_EQ(status.phase(), wire::WAITING_FOR_PS);
  EXPECT_EQ(status.missing_task(0), "ps/0");
  request.mutable_task()->set_index(5);
  request.mutable_task()->set_incarnation(8);
  EXPECT_THAT(client->Register(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("chief at 127.0.0.1:"),
                             HasSubstr("worker/5 is not in the cluster"))));
}

TEST_F(ChiefTaskTest, AClusterOfMoreTasksThanDescriptorsIsRefused) {
  for (int i = 0; i < 1000; ++i) {
    options_.workers[i] = absl::StrCat("127.0.0.1:", 1000 + i);
  }
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 1024;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const absl::Status refused = Start().status();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a chief of 1 ps and 1000 workers needs 1066 "
                                 "open descriptors, but may have 1024")));
}

TEST_F(ChiefTaskTest, StopEndsAWaitingChief) {
  ASSERT_OK_AND_ASSIGN(auto task, Start());
  task->Stop();
  task->Stop();
  const absl::Status ended = task->Wait();
  EXPECT_THAT(ended, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(ExitCodeFor(ended), ExitCode::kTerminated);
}

TEST_F(ChiefTaskTest, APsThatNeverComesAsksForARestart) {
  options_.ps_timeout = absl::Milliseconds(300);
  ASSERT_OK_AND_ASSIGN(auto task, Start());
  const absl::Status ended = task->Wait();
  EXPECT_THAT(ended,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ps/0")));
  EXPECT_EQ(ExitCodeFor(ended), ExitCode::kRetryable);
}

TEST_F(ChiefTaskTest, ItsCheckpointDirectoryIsInUseAsLongAsItLives) {
  {
    ASSERT_OK_AND_ASSIGN(auto task, Start());
    EXPECT_FALSE(DirectoryLock::TryExclude(directory_).has_value());
  }
  EXPECT_TRUE(DirectoryLock::TryExclude(directory_).has_value());
}

TEST_F(ChiefTaskTest, ASecondChiefOfADirectoryIsToldTheFirst) {
  options_.job.set_name("line");
  options_.directory_lease = absl::Milliseconds(500);
  ASSERT_OK_AND_ASSIGN(auto first, Start());
  options_.directory_lease = absl::Minutes(1);
  const absl::Status second = Start().status();
  EXPECT_EQ(ExitCodeFor(second), ExitCode::kBadConfiguration);
  EXPECT_THAT(std::string(second.message()),
              AllOf(HasSubstr(directory_),
                    HasSubstr(absl::StrCat("process ", getpid(), " on ")),
                    HasSubstr("job line, since 20")));
  first.reset();
  EXPECT_OK(Start());
}

TEST_F(ChiefTaskTest, AChiefWhoseDirectoryIsAnothersEndsAndTouchesNothing) {
  options_.directory_lease = absl::Milliseconds(500);
  ASSERT_OK_AND_ASSIGN(auto task, Start());
  ASSERT_OK_AND_ASSIGN(OwnerSight sight, LookAtOwner(directory_));
  durable::DirectoryOwner& owner = *sight.owner;
  owner.set_chief_epoch(owner.chief_epoch() + 1);
  owner.set_host("node-b/kernel-2");
  owner.set_process_id(17);
  ASSERT_OK(WriteOwner(directory_, owner));
  const absl::Status ended = task->Wait();
  EXPECT_THAT(ended, StatusIs(absl::StatusCode::kFailedPrecondition,
                              HasSubstr("process 17 on node-b")));
  EXPECT_EQ(ExitCodeFor(ended), ExitCode::kPermanentFailure);
  task.reset();
  ASSERT_OK_AND_ASSIGN(sight, LookAtOwner(directory_));
  EXPECT_EQ(sight.owner->process_id(), 17);
  EXPECT_FALSE(sight.owner->released());
}

TEST_F(ChiefTaskTest, APortInUseIsBadConfiguration) {
  ASSERT_OK_AND_ASSIGN(auto task, Start());
  options_.listen_address = absl::StrCat("127.0.0.1:", task->port());
  const absl::Status second = Start().status();
  EXPECT_THAT(second, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr(options_.listen_address)));
}

TEST_F(ChiefTaskTest, ACheckpointDirectoryThatIsAFileIsBadConfiguration) {
  std::ofstream(directory_) << "not a directory";
  const absl::Status started = Start().status();
  EXPECT_EQ(ExitCodeFor(started), ExitCode::kBadConfiguration);
  EXPECT_THAT(std::string(started.message()), HasSubstr(directory_));
  std::filesystem::remove(directory_);
}

TEST_F(ChiefTaskTest, NoCheckpointDirectoryIsBadConfiguration) {
  options_.checkpoint_directory.clear();
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("--checkpoint_dir")));
}

TEST_F(ChiefTaskTest, ACheckpointOfAnotherModelIsBadConfiguration) {
  durable::CheckpointManifest manifest = FinalManifest();
  manifest.mutable_variable(0)->set_shape(1, 3);
  WriteCheckpoint(manifest);
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("ckpt-000000000010"),
                                      HasSubstr("dense/kernel [4, 3]"))));
}

TEST_F(ChiefTaskTest, WhileItsCheckpointCantBeReadItListensAndTellsSo) {
  WriteCheckpoint(FinalManifest());
  const std::string manifest =
      CheckpointStore(directory_).PathOf(10) + "/MANIFEST";
  std::filesystem::rename(manifest, directory_ + "/kept");
  std::filesystem::create_symlink("/proc/self/mem", manifest);  // EIO
  // The port is known before the chief listens.
  const auto port = *RpcServer::Start("127.0.0.1:0", {});
  options_.listen_address = absl::StrCat("127.0.0.1:", port->port());
  port->Stop(absl::ZeroDuration());
  auto client = ChiefClient::Create(options_.listen_address, absl::Seconds(10));
  bool was_told = false;
  options_.cancelled = [&] {
    const auto status = client->GetStatus();
    if (was_told || !status.ok()) return false;
    was_told = true;
    EXPECT_EQ(status->phase(), wire::WAITING_FOR_PS);
    EXPECT_THAT(status->trouble(), HasSubstr(manifest));
    wire::RegisterRequest request;
    request.mutable_task()->set_role("worker");
    EXPECT_THAT(client->Register(request),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(manifest)));
    std::filesystem::rename(directory_ + "/kept", manifest);
    return false;
  };
  ASSERT_OK_AND_ASSIGN(auto task, Start());
  EXPECT_TRUE(was_told);
  EXPECT_EQ(client->GetStatus()->phase(), wire::COMPLETE);
  EXPECT_EQ(client->GetStatus()->global_step(), 10);
  EXPECT_OK(task->Wait());
}

TEST_F(ChiefTaskTest, AStopEndsTheWaitForADisk) {
  WriteCheckpoint(FinalManifest());
  const std::string manifest =
      CheckpointStore(directory_).PathOf(10) + "/MANIFEST";
  std::filesystem::remove(manifest);
  std::filesystem::create_symlink("/proc/self/mem", manifest);  // EIO
  options_.cancelled = [] { return true; };
  EXPECT_THAT(Start(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr(manifest)));
}

TEST_F(ChiefTaskTest, ADirectoryThatStaysFullIsBadConfiguration) {
  std::filesystem::create_directories(directory_);
  options_.checkpoint_timeout = absl::ZeroDuration();
  FailFsyncOf(std::filesystem::canonical(directory_).string() + "*", ENOSPC);
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr(directory_),
                                      HasSubstr("No space left on device"))));
  FailFsyncOf("");
}

TEST_F(ChiefTaskTest, AJobThatIsCompleteAlreadyEndsWithSuccess) {
  WriteCheckpoint(FinalManifest());
  ASSERT_OK_AND_ASSIGN(auto task, Start());
  auto client = ChiefClient::Create(absl::StrCat("127.0.0.1:", task->port()),
                                    absl::Seconds(10));
  EXPECT_EQ(client->GetStatus()->phase(), wire::COMPLETE);
  EXPECT_OK(task->Wait());
}

TEST_F(ChiefTaskTest, TheTrainerIsToldTheEndAndMayHang) {
  WriteCheckpoint(FinalManifest());
  const std::string token_file = testing::TempDir() + "/trainer_token";
  std::ofstream(token_file) << "secret";
  absl::Mutex mu;
  std::string last_body;
  bool hangs = false;
  HttpsStub stub(
      testing::TempDir(),
      [&](const HttpsStub::Request& request) -> std::optional<std::string> {
        const absl::MutexLock lock(&mu);
        last_body = request.body;
        if (hangs) return std::nullopt;
        return "200 OK";
      });
  options_.trainer_server = {
      .url = absl::StrCat("https://127.0.0.1:", stub.port(), "/status"),
      .ca_file = stub.ca_file(),
      .token_file = token_file};
  {
    ASSERT_OK_AND_ASSIGN(auto task, Start());
    EXPECT_OK(task->Wait());
  }
  {
    const absl::MutexLock lock(&mu);
    EXPECT_THAT(last_body, HasSubstr(R"("progressPercentage":100)"));
    hangs = true;
  }
  ASSERT_OK_AND_ASSIGN(auto task, Start());
  EXPECT_OK(task->Wait());
}

TEST_F(ChiefTaskTest, ATaskThatIsNotTheChiefIsBadConfiguration) {
  TaskConfig config;
  config.role = Role::kWorker;
  config.index = 3;
  config.cluster.emplace();
  EXPECT_THAT(options_.UseCluster(config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("worker/3 is not the chief")));
}

TEST_F(ChiefTaskTest, AClusterWithoutPsIsBadConfiguration) {
  options_.ps.clear();
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kInvalidArgument,
                                "the cluster has 0 ps and 1 workers"));
}

}  // namespace
}  // namespace parasol
