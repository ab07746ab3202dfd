#ifndef PARASOL_STORAGE_TESTING_CHECKPOINT_FIXTURE_H_
#define PARASOL_STORAGE_TESTING_CHECKPOINT_FIXTURE_H_

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
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_manifest.h"
#include "storage/durable_file.h"
#include "storage/shard_writer.h"

namespace parasol {

// Fixture of tests that write checkpoints into root(), an empty directory.
class CheckpointFixture : public ::testing::Test {
 protected:
  struct Elements {
    std::string variable;
    int array = 0;
    int64_t first = 0;
    int64_t updates = 0;
    std::vector<float> values;
  };

  CheckpointFixture() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }

  const std::string& root() const { return root_; }

  static absl::StatusOr<durable::CheckpointFile> WriteShard(
      const std::string& directory, const std::string& name,
      const std::vector<Elements>& entries) {
    ASSIGN_OR_RETURN(const std::unique_ptr<ShardWriter> writer,
                     ShardWriter::Create(directory + "/" + name));
    for (const Elements& entry : entries) {
      RETURN_IF_ERROR(writer->AddElements(entry.variable, entry.array,
                                          entry.first, entry.updates,
                                          entry.values));
    }
    return writer->Finish();
  }

  // Writes the manifest as CheckpointStore::Commit() does, without its
  // protocol.
  static absl::Status WriteManifest(const std::string& directory,
                                    durable::CheckpointManifest manifest) {
    if (manifest.format_version() == 0) {
      manifest.set_format_version(kFormatVersion);
    }
    return WriteFileDurably(absl::StrCat(directory, "/", kManifestName),
                            EncodeManifest(manifest));
  }

  static std::string MustRead(const std::string& path) {
    absl::StatusOr<std::string> bytes = ReadFile(path, 16 << 20);
    EXPECT_OK(bytes);
    return bytes.value_or("");
  }

 private:
  const std::string root_ = absl::StrCat(
      ::testing::TempDir(), "/",
      ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TESTING_CHECKPOINT_FIXTURE_H_
