#include "cluster/checkpoint/model/testing/model_checkpoint.h"

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_store.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

constexpr int kFiles = 2;

absl::StatusOr<durable::CheckpointFile> WriteFile(const ModelCheckpoint& model,
                                                  const std::string& directory,
                                                  int file) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<ShardWriter> writer,
      ShardWriter::Create(absl::StrCat(directory, "/ps-", file, ".sst")));
  if (file == 0) {
    const std::vector<float>* const arrays[] = {&model.kernel, &model.m,
                                                &model.v};
    for (int array = 0; array < 3; ++array) {
      RETURN_IF_ERROR(writer->AddElements("dense/kernel", array, 0, model.step,
                                          *arrays[array]));
    }
  }
  RETURN_IF_ERROR(writer->AddRows("users", {.updates = model.step}));
  for (const auto& [id, row] : model.users) {
    if (static_cast<int>(id % kFiles) != file) continue;
    const uint64_t ids[] = {id};
    RETURN_IF_ERROR(writer->AddRows(
        "users", {.updates = model.step, .ids = ids, .rows = row}));
  }
  return writer->Finish();
}

}  // namespace

absl::Status ModelCheckpoint::Write(const std::string& directory) const {
  ASSIGN_OR_RETURN(CheckpointStore store,
                   CheckpointStore::OpenForWriting(directory));
  ASSIGN_OR_RETURN(const std::string working, store.Begin(step));
  durable::CheckpointManifest manifest;
  manifest.set_global_step(step);
  manifest.set_run_id(run_id);
  manifest.set_final(is_final);
  manifest.mutable_job()->set_name(job_name);
  manifest.mutable_job()->mutable_optimizer()->mutable_adam();
  manifest.set_created_unix_micros(1'800'000'000'000'000);
  durable::CheckpointVariable& variable = *manifest.add_variable();
  variable.set_name("dense/kernel");
  variable.mutable_shape()->Assign(shape.begin(), shape.end());
  durable::CheckpointTable& table = *manifest.add_table();
  table.set_name("users");
  table.set_width(2);
  for (const char* slot : {"m", "v"}) {
    variable.add_slot(slot);
    if (!users_have_row_slots) table.add_slot(slot);
  }
  if (users_have_row_slots) {
    table.add_slot("row_accumulator");
    table.add_slot_width(1);
    job::SparseTable& spec =
        *manifest.mutable_job()->mutable_model()->add_sparse_table();
    spec.set_name("users");
    spec.set_width(2);
    spec.mutable_optimizer()->mutable_rowwise_adagrad();
  }
  for (int file = 0; file < kFiles; ++file) {
    ASSIGN_OR_RETURN(*manifest.add_file(), WriteFile(*this, working, file));
  }
  return store.Commit(working, manifest);
}

std::string ModelCheckpoint::PathIn(const std::string& directory) const {
  return CheckpointStore(directory).PathOf(step);
}

std::string EmptyTestDirectory() {
  const auto* const test =
      ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = absl::StrCat(
      ::testing::TempDir(), "/", test->test_suite_name(), "_", test->name());
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

}  // namespace parasol
