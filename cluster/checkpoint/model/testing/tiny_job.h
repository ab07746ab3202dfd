#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_TESTING_TINY_JOB_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_TESTING_TINY_JOB_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"
#include "storage/shard_writer.h"

namespace parasol {

// Fixture of tests on a job whose right answers can be worked out by hand:
// images of 1×2 pixels that are (1, 0) or (0, 1), and one dense layer of two
// classes.
//
//   image   (1, 0)  (0, 1)  (1, 0)
//   label     0       1       1
class TinyJobFixture : public ::testing::Test {
 protected:
  // Results with the identity as kernel: two of three images are classified
  // correctly, and -log(softmax) is log(1 + 1/e) for two of them and log(1 + e)
  // for the third.
  static constexpr double kIdentityAccuracy = 2.0 / 3;
  static constexpr double kIdentityLoss = 0.6465950209;

  TinyJobFixture() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(data_dir());
    std::filesystem::create_directories(checkpoint_dir());
    using namespace std::string_literals;
    EXPECT_OK(WriteFileDurably(data_dir() + "/images",
                               "\0\0\x08\x03\0\0\0\x03\0\0\0\x01\0\0\0\x02"
                               "\xff\0\0\xff\xff\0"s));
    EXPECT_OK(WriteFileDurably(data_dir() + "/labels",
                               "\0\0\x08\x01\0\0\0\x03\0\x01\x01"s));
  }

  std::string data_dir() const { return root_ + "/data"; }
  std::string checkpoint_dir() const { return root_ + "/checkpoints"; }

  static job::Job TinyJob() {
    job::Job job;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"pb(
          name: "tiny"
          model {
            input_shape: [ 1, 2 ]
            layer { flatten {} }
            layer {
              name: "logits"
              dense {
                units: 2
                use_bias: true
                kernel_initializer { zeros {} }
                bias_initializer { zeros {} }
              }
            }
            loss { sparse_categorical_crossentropy {} }
          }
          eval {
            idx { images: "images" labels: "labels" }
            batch_size: 2
            prefetch_batches: 1
          }
        )pb",
        &job));
    return job;
  }

  // Commits a checkpoint with `kernel`, [2, 2] in row-major order, and a bias
  // of zeros.
  absl::Status WriteCheckpoint(int64_t step, const std::vector<float>& kernel,
                               bool final, bool evaluation_due = false) {
    CheckpointStore store(checkpoint_dir());
    ASSIGN_OR_RETURN(const std::string directory, store.Begin(step));
    ASSIGN_OR_RETURN(const std::unique_ptr<ShardWriter> writer,
                     ShardWriter::Create(directory + "/0.sst"));
    const std::vector<float> bias = {0, 0};
    RETURN_IF_ERROR(
        writer->AddElements("logits/bias", kValueArray, 0, 0, bias));
    RETURN_IF_ERROR(
        writer->AddElements("logits/kernel", kValueArray, 0, 0, kernel));
    durable::CheckpointManifest manifest;
    manifest.set_global_step(step);
    manifest.set_run_id("run");
    manifest.set_final(final);
    manifest.set_evaluation_due(evaluation_due);
    *manifest.mutable_job() = job_of_checkpoints_;
    manifest.set_created_unix_micros(++checkpoints_written_);
    ASSIGN_OR_RETURN(*manifest.add_file(), writer->Finish());
    return store.Commit(directory, manifest);
  }
  static std::vector<float> Identity() { return {1, 0, 0, 1}; }

  // The job in the manifests of checkpoints.
  job::Job job_of_checkpoints_;

 private:
  const std::string root_ = absl::StrCat(
      ::testing::TempDir(), "/",
      ::testing::UnitTest::GetInstance()->current_test_info()->name());
  int64_t checkpoints_written_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_TESTING_TINY_JOB_H_
