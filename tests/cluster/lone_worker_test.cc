// A worker without a cluster holds what a ps would hold after the same pushes,
// and each goes on from the other's checkpoints, with every optimizer.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/placement/placement.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "ml/layer/variable_spec.h"
#include "parameters/training_parameters.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"
#include "proto/parameter.pb.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/write_shard.h"
#include "ps/testing/requests.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/shard_writer.h"
#include "worker/store/parameter_store.h"

namespace parasol {
namespace {

using google::protobuf::FieldDescriptor;

constexpr uint64_t kWorker = 7;
constexpr size_t kElements = 10;
constexpr size_t kWidth = 3;
constexpr char kRun[] = "run";

// Two sparse tables, the second with an optimizer of its own.
job::Job MakeJob(const FieldDescriptor* optimizer) {
  job::Job job;
  job.set_seed(5);
  *job.mutable_optimizer() = OptimizerOfKind(optimizer);
  for (const std::string name : {"users", "items"}) {
    job::SparseTable& table = *job.mutable_model()->add_sparse_table();
    table.set_name(name);
    table.set_width(kWidth);
    table.mutable_initializer()->mutable_random_uniform();
  }
  job.mutable_model()
      ->mutable_sparse_table(1)
      ->mutable_optimizer()
      ->mutable_adagrad();
  return job;
}

std::vector<VariableSpec> MakeVariables() {
  VariableSpec kernel{.name = "kernel", .shape = {kElements}};
  kernel.initializer.mutable_random_uniform();
  VariableSpec moving{.name = "moving", .shape = {kElements}, .trained = false};
  moving.initializer.mutable_zeros();
  return {kernel, moving};
}

// What the chief would have one ps load.
wire::LoadRequest MakeOrder(const job::Job& job) {
  wire::LoadRequest order;
  order.set_run_id(kRun);
  order.set_seed(job.seed());
  order.set_num_shards(1);
  *order.mutable_optimizer() = job.optimizer();
  const auto placement = Place(MakeVariables(), job.parameter_server(), 1);
  for (const wire::PartSpec& part : placement->shards[0]) {
    *order.add_part() = part;
  }
  for (const job::SparseTable& table : job.model().sparse_table()) {
    wire::TableSpec& spec = *order.add_table();
    spec.set_id(order.table_size() - 1);
    spec.set_name(table.name());
    spec.set_width(table.width());
    *spec.mutable_initializer() = table.initializer();
    if (table.has_optimizer()) *spec.mutable_optimizer() = table.optimizer();
  }
  return order;
}

std::vector<float> SomeFloats(size_t count, int step) {
  std::vector<float> floats(count);
  for (size_t i = 0; i < count; ++i) floats[i] = std::sin(step + .7f * i);
  return floats;
}

// Other rows at each step, one of them twice; at some steps none.
std::vector<uint64_t> IdsOf(int step) {
  if (step % 4 == 3) return {};
  return {uint64_t(step % 3), 7, uint64_t(step % 3), 1ull << 60};
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

void Push(ParameterStore& parameters, int step) {
  const std::vector<uint64_t> ids = IdsOf(step);
  const std::vector<float> gradient = SomeFloats(kElements, step),
                           rows = SomeFloats(ids.size() * kWidth, step);
  TrainingParameters::PushRequest push;
  push.gradients = {{0, gradient}, {1, gradient}};
  push.rows = {{0, ids, rows}, {1, ids, rows}};
  ASSERT_OK(parameters.Push(push)->Wait());
}

void Push(ParameterShard& ps, int step) {
  const std::vector<uint64_t> ids = IdsOf(step);
  const std::string id_bytes = BytesOf(ids),
                    gradient = BytesOf(SomeFloats(kElements, step)),
                    rows = BytesOf(SomeFloats(ids.size() * kWidth, step));
  PendingResult dense;
  ps.Execute(kWorker,
             OperationOf(MakePush(3 * step + 1, {MakeRange(0, 0, kElements),
                                                 MakeRange(1, 0, kElements)})),
             {{ViewOf(gradient), ViewOf(gradient)}}, dense.Done());
  ASSERT_OK(dense.Get());
  for (uint32_t table = 0; table < 2; ++table) {
    wire::RowPush push;
    push.set_sequence(3 * step + 2 + table);
    push.set_table(table);
    push.set_rows(ids.size());
    PendingResult sparse;
    ps.Execute(kWorker, OperationOf(push), {{ViewOf(id_bytes), ViewOf(rows)}},
               sparse.Done());
    ASSERT_OK(sparse.Get());
  }
}

const std::vector<uint64_t> kPulled = {0, 1, 2, 7, 1ull << 60, 99};

std::vector<float> Everything(ParameterStore& parameters) {
  std::vector<float> all(2 * kElements + 2 * kPulled.size() * kWidth);
  absl::Span<float> left = absl::MakeSpan(all);
  const auto take = [&left](size_t count) {
    const absl::Span<float> taken = left.first(count);
    left.remove_prefix(count);
    return taken;
  };
  TrainingParameters::PullRequest pull;
  for (const size_t i : {0, 1}) pull.targets.push_back({i, take(kElements)});
  for (const size_t i : {0, 1}) {
    pull.rows.push_back({i, kPulled, take(kPulled.size() * kWidth)});
  }
  EXPECT_OK(parameters.Pull(pull)->Wait());
  return all;
}

std::vector<float> Everything(ParameterShard& ps) {
  PendingResult dense;
  ps.Execute(/*worker_incarnation=*/1,
             OperationOf(MakePull(
                 {MakeRange(0, 0, kElements), MakeRange(1, 0, kElements)})),
             {}, dense.Done());
  std::vector<float> all = FloatsOf(dense.Get()->payloads);
  const std::string ids = BytesOf(kPulled);
  for (uint32_t table = 0; table < 2; ++table) {
    wire::RowPull pull;
    pull.set_table(table);
    pull.set_rows(kPulled.size());
    PendingResult sparse;
    ps.Execute(/*worker_incarnation=*/1, OperationOf(pull), {{ViewOf(ids)}},
               sparse.Done());
    const std::vector<float> rows = FloatsOf(sparse.Get()->payloads);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

class LoneWorkerTest : public testing::TestWithParam<const FieldDescriptor*> {
 protected:
  std::unique_ptr<ParameterStore> Local() {
    auto parameters = ParameterStore::Create(MakeVariables(), job_);
    EXPECT_OK(parameters);
    return *std::move(parameters);
  }

  // Checkpoints of a local worker's tables and of a ps's.
  std::string Save(const ParameterStore& parameters, int64_t step) {
    return Commit(step, [&](const std::string& path) {
      auto writer = *ShardWriter::Create(path);
      EXPECT_OK(parameters.Save(*writer));
      return writer->Finish();
    });
  }
  std::string Save(ParameterShard& ps, int64_t step) {
    return Commit(step, [&](const std::string& path) {
      return WriteShard(ps.TakeSnapshot(), 0, 1, path);
    });
  }

  const job::Job job_ = MakeJob(GetParam());

 private:
  template <typename Write>
  std::string Commit(int64_t step, Write write) {
    CheckpointStore store = *CheckpointStore::OpenForWriting(
        absl::StrCat(testing::TempDir(), "/lone_worker_", GetParam()->name()));
    const std::string directory = *store.Begin(step);
    durable::CheckpointManifest manifest;
    manifest.set_run_id(kRun);
    manifest.set_global_step(step);
    *manifest.mutable_job() = job_;
    Local()->contents().AddTo(manifest);
    *manifest.add_file() = *write(absl::StrCat(directory, "/shard.sst"));
    EXPECT_OK(store.Commit(directory, manifest));
    return store.PathOf(step);
  }
};

TEST_P(LoneWorkerTest, HoldsWhatAPsHolds) {
  const auto local = Local();
  const auto ps = LoadShard(MakeOrder(job_), {});
  ASSERT_OK(ps);
  EXPECT_EQ(Everything(*local), Everything(**ps));
  for (int step = 0; step < 6; ++step) {
    Push(*local, step);
    Push(**ps, step);
    ASSERT_EQ(Everything(*local), Everything(**ps)) << step;
  }
}

TEST_P(LoneWorkerTest, APsGoesOnFromItsCheckpointAndBackAgain) {
  const auto alone = Local();
  for (int step = 0; step < 3; ++step) Push(*alone, step);
  wire::LoadRequest order = MakeOrder(job_);
  order.set_checkpoint(Save(*alone, 3));
  const auto ps = LoadShard(order, {});
  ASSERT_OK(ps);
  for (int step = 3; step < 6; ++step) {
    Push(*alone, step);
    Push(**ps, step);
  }
  const auto checkpoint = CheckpointReader::Open(Save(**ps, 6));
  ASSERT_OK(checkpoint);
  const auto again = Local();
  ASSERT_OK(again->Restore(**checkpoint));
  for (int step = 6; step < 9; ++step) {
    Push(*alone, step);
    Push(*again, step);
  }
  EXPECT_EQ(Everything(*again), Everything(*alone));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, LoneWorkerTest,
                         testing::ValuesIn(AllOptimizers()),
                         [](const auto& info) {
                           return std::string(info.param->name());
                         });

// A checkpoint of `parameters`, whose job is `job`.
std::unique_ptr<CheckpointReader> SaveToRead(const ParameterStore& parameters,
                                             const job::Job& job) {
  CheckpointStore store = *CheckpointStore::OpenForWriting(absl::StrCat(
      testing::TempDir(), "/",
      testing::UnitTest::GetInstance()->current_test_info()->name()));
  const std::string directory = *store.Begin(1);
  durable::CheckpointManifest manifest;
  manifest.set_global_step(1);
  *manifest.mutable_job() = job;
  parameters.contents().AddTo(manifest);
  auto writer = *ShardWriter::Create(absl::StrCat(directory, "/shard.sst"));
  EXPECT_OK(parameters.Save(*writer));
  *manifest.add_file() = *writer->Finish();
  EXPECT_OK(store.Commit(directory, manifest));
  return *CheckpointReader::Open(store.PathOf(1));
}

job::Job SgdJob() {
  return MakeJob(job::Optimizer::descriptor()->FindFieldByName("sgd"));
}

TEST(LoneWorker, RowsOfAnotherWidthAreRefused) {
  job::Job job = SgdJob();
  const auto three = *ParameterStore::Create({}, job);
  const auto checkpoint = SaveToRead(*three, job);
  job.mutable_model()->mutable_sparse_table(0)->set_width(4);
  const auto four = *ParameterStore::Create({}, job);
  EXPECT_THAT(four->Restore(*checkpoint),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("users of width 3, the job has "
                                          "users of width 4")));
}

TEST(LoneWorker, ALargerVariableIsNotRestoredInPart) {
  const job::Job job = SgdJob();
  std::vector<VariableSpec> variables = MakeVariables();
  const auto all = *ParameterStore::Create(variables, job);
  const auto checkpoint = SaveToRead(*all, job);
  variables[0].shape = {kElements - 1};
  const auto fewer = *ParameterStore::Create(variables, job);
  EXPECT_THAT(fewer->Restore(*checkpoint),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("kernel [10], the job has kernel "
                                          "[9]")));
}

TEST(LoneWorker, SlotsOfAnotherOptimizerAreNotRestored) {
  job::Job job = SgdJob();
  job.mutable_optimizer()->mutable_sgd()->set_momentum(.9);
  const auto with_momentum = *ParameterStore::Create(MakeVariables(), job);
  const auto checkpoint = SaveToRead(*with_momentum, job);
  job.mutable_optimizer()->mutable_adagrad();
  const auto other = *ParameterStore::Create(MakeVariables(), job);
  EXPECT_THAT(other->Restore(*checkpoint),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("optimizer sgd, the job has "
                                          "optimizer adagrad")));
}

}  // namespace
}  // namespace parasol
