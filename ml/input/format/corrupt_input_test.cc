// Every format with bytes changed at random: whatever they say, nothing crashes
// or hangs, no batch is malformed, and every error names the file.

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/mutated.h"
#include "ml/input/testing/read_all.h"
#include "ml/input/testing/tf_example_writer.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kMutationsEach = 250;
constexpr int kMaxBatches = 100;

struct Format {
  std::string name;
  std::string bytes;
  std::string dataset;  // text of the dataset with the file "mutated"
  std::string model;
};

std::vector<Format> Formats() {
  const std::string ids = "column { name: 'c' hash { buckets: 7 } } ";
  std::string csv = "a,c,y\n";
  std::string libsvm;
  std::string records;
  std::string cifar;
  for (int i = 0; i < 8; ++i) {
    csv += absl::StrCat(i, ".5,\"q\"\"", i, "\n\",", i % 2, "\n");
    libsvm += absl::StrCat(i % 2, " 1:", i, " 3:0.25\n");
    records += TfRecord(ExampleOf(RealFeature("a", {1.0f * i}) +
                                  IntegerFeature("y", {i % 2}) +
                                  TextFeature("c", {"x", absl::StrCat(i)})));
    cifar += std::string(3073, static_cast<char>(i));
  }
  const std::string model =
      "loss { binary_crossentropy {} } input { name: 'a' dense { shape: 1 } } "
      "input { name: 'c' ids { " +
      ids + "} }";
  const std::string image = "input_shape: [32, 32, 3]";
  std::vector<Format> formats = {
      {"csv", csv, "csv { file: 'mutated' label { column: 'y' } }", model},
      {"libsvm", libsvm, "libsvm { file: 'mutated' }",
       "loss { binary_crossentropy {} } input { name: 'a' dense { shape: 3 } } "
       "input { name: 'c' ids {} }"},
      {"tfrecord", records, "tfrecord { file: 'mutated' label: 'y' }", model},
      {"cifar", cifar, "cifar { file: 'mutated' }", image},
      {"idx", IdxImagesFile(CountingImages(8, 3, 3)),
       "idx { images: 'mutated' labels: 'labels' }", "input_shape: [3, 3]"},
      {"ratings", "1::2::3::4\n5::6::7::8\n", "ratings { file: 'mutated' }",
       "loss { mean_squared_error {} } input { name: 'user' ids {} }"},
  };
  const size_t plain = formats.size();
  for (size_t i = 0; i < plain; ++i) {
    Format packed = formats[i];
    packed.name += ".gz";
    packed.bytes = Gzip(packed.bytes);
    formats.push_back(packed);
  }
  return formats;
}

void ExpectWellFormed(const Batch& batch) {
  ASSERT_GT(batch.size, 0);
  for (const DenseFeature& feature : batch.dense) {
    size_t elements = batch.size;
    for (const int64_t axis : feature.shape) elements *= axis;
    EXPECT_EQ(feature.values.size(), elements);
  }
  for (const IdFeature& feature : batch.ids) {
    ASSERT_EQ(feature.offsets.size(), batch.size + 1u);
    EXPECT_EQ(feature.offsets.back(), feature.ids.size());
    EXPECT_TRUE(feature.weights.empty() ||
                feature.weights.size() == feature.ids.size());
  }
  EXPECT_EQ(batch.labels.size(), static_cast<size_t>(batch.size));
}

void ReadThrough(const Format& format, const std::string& policy) {
  const auto pipeline = InputPipeline::Open(
      FromText<job::Dataset>(
          absl::StrCat("batch_size: 3 on_corrupt: ", policy, format.dataset)),
      *InputsFromText(format.model), {.data_dir = testing::TempDir()});
  if (!pipeline.ok()) return;
  for (int i = 0; i < kMaxBatches; ++i) {
    const auto batch = (*pipeline)->Next();
    if (!batch.ok()) {
      EXPECT_EQ(batch.status().code(), absl::StatusCode::kDataLoss);
      EXPECT_TRUE(absl::StrContains(batch.status().message(), "mutated") ||
                  absl::StrContains(batch.status().message(), "not one record"))
          << batch.status();
      return;
    }
    if (*batch == nullptr) return;
    ExpectWellFormed(**batch);
  }
  FAIL() << "one epoch of a few records has more than " << kMaxBatches;
}

TEST(CorruptInputTest, DamagedGzipIsNamedWhateverIsInIt) {
  WriteTestFile("labels", IdxLabelsFile({0, 1, 2, 3, 4, 5, 6, 7}));
  for (const Format& format : Formats()) {
    if (!absl::EndsWith(format.name, ".gz")) continue;
    SCOPED_TRACE(format.name);
    std::string bad_crc = format.bytes;
    bad_crc[bad_crc.size() - 6] ^= 1;
    const std::string cut_off = format.bytes.substr(0, format.bytes.size() - 9);
    for (const std::string& bytes : {bad_crc, cut_off}) {
      WriteTestFile("mutated", bytes);
      EXPECT_THAT(
          ReadAll(format.dataset + " on_corrupt: SKIP", format.model),
          StatusIs(absl::StatusCode::kDataLoss,
                   AllOf(HasSubstr("/mutated at byte "), HasSubstr("gzip"))));
    }
  }
}

TEST(CorruptInputTest, NoBytesCrashHangOrMakeAMalformedBatch) {
  WriteTestFile("labels", IdxLabelsFile({0, 1, 2, 3, 4, 5, 6, 7}));
  for (const Format& format : Formats()) {
    SCOPED_TRACE(format.name);
    WriteTestFile("mutated", format.bytes);
    ReadThrough(format, "STOP ");
    std::mt19937_64 random(1);
    for (int i = 0; i < kMutationsEach; ++i) {
      SCOPED_TRACE(i);
      WriteTestFile("mutated", Mutated(format.bytes, random));
      ReadThrough(format, i % 2 == 0 ? "STOP " : "SKIP ");
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace parasol
