#ifndef PARASOL_ML_INPUT_TESTING_BROUGHT_SET_FIXTURE_H_
#define PARASOL_ML_INPUT_TESTING_BROUGHT_SET_FIXTURE_H_

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/testing/read_all.h"
#include "ml/input/testing/sample_formats.h"
#include "proto/job.pb.h"

namespace parasol {

// Reads data sets whose files are brought to this machine first, to a folder of
// the test's.
class BroughtSetFixture : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(copies_);
    ObjectCache::OfProcess().SetDirectory(copies_);
  }
  void TearDown() override { ObjectCache::OfProcess().SetDirectory(""); }

  // Returns what is read of a data set in `data_dir`: what it ends with, last.
  static std::vector<std::string> Read(const SampleFormat& format,
                                       const std::string& data_dir,
                                       const SetMemory& memory = {}) {
    const auto pipeline = InputPipeline::Open(
        FromText<job::Dataset>(
            absl::StrCat("batch_size: 7 shuffle_buffer: 20 decode_threads: 3 ",
                         format.dataset)),
        *InputsFromText(format.model),
        {.data_dir = data_dir, .seed = 5, .memory = memory});
    if (!pipeline.ok()) return {std::string(pipeline.status().message())};
    return ReadTexts(**pipeline, 1000);
  }

  // Returns the paths of what was brought.
  std::vector<std::string> Copies() const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(copies_, error)) {
      names.push_back(entry.path());
    }
    return names;
  }

  const std::string copies_ = testing::TempDir() + "/brought";
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TESTING_BROUGHT_SET_FIXTURE_H_
