// The real libraries read what is written here, where a Python has them
// (base/testing/python.h). TensorFlow and PyTorch are nobody's to install:
//
//   bazel test //storage/tensor_files:tests --test_filter='RealLibraries*'
//     --test_env=PARASOL_PYTHON=/path/to/python

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "base/testing/python.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/tensor_files/npz_writer.h"
#include "storage/tensor_files/safetensors_writer.h"
#include "storage/tensor_files/tensor_bundle.h"

namespace parasol {
namespace {

using nlohmann::json;

#define SKIP_WITHOUT(modules)                                       \
  if (const std::string why = PythonLacks(modules); !why.empty()) { \
    GTEST_SKIP() << why;                                            \
  }

template <typename T>
absl::Status Append(TensorWriter& writer, const std::vector<T>& values) {
  return writer.Append(absl::string_view(
      reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}

// A kernel, a table's ids in two parts, and a scalar.
std::vector<TensorPart> SomeParts() {
  const TensorInfo ids = {"ids", ElementType::kInt64, {3}};
  return {WholeTensor({"dense/kernel", ElementType::kFloat32, {2, 2}}),
          {.tensor = ids, .first_row = 0, .rows = 2, .part = 0, .parts = 2},
          {.tensor = ids, .first_row = 2, .rows = 1, .part = 1, .parts = 2},
          WholeTensor({"global_step", ElementType::kInt64, {}})};
}

absl::Status WriteSome(absl::StatusOr<std::unique_ptr<TensorWriter>> writer) {
  RETURN_IF_ERROR(writer.status());
  RETURN_IF_ERROR(Append<float>(**writer, {1, -2.5, 0, 4}));
  RETURN_IF_ERROR(Append<int64_t>(**writer, {7, -1}));
  RETURN_IF_ERROR(Append<int64_t>(**writer, {9}));
  RETURN_IF_ERROR(Append<int64_t>(**writer, {12}));
  return (*writer)->Finish();
}

// The tensors as files without slices have them.
json InParts() {
  return {{"dense/kernel", {{1, -2.5}, {0, 4}}},
          {"ids.part-00000-of-00002", {7, -1}},
          {"ids.part-00001-of-00002", {9}},
          {"global_step", 12}};
}

json ReadBy(const std::string& program, const std::string& path) {
  const CompletedProcess run = RunPython(program, {path});
  EXPECT_EQ(run.end.code(), 0) << run.standard_error;
  return json::parse(run.standard_output, nullptr, false);
}

constexpr char kPrintAll[] =
    "print(json.dumps({k: v.tolist() for k, v in tensors.items()}))";

TEST(RealLibrariesTest, NumpyReadsNpzOfOldAndNewSizes) {
  SKIP_WITHOUT("numpy");
  const std::string path = ::testing::TempDir() + "/numpy.npz";
  for (const uint64_t first_64_bit : {uint64_t{0xffffffff}, uint64_t{1}}) {
    ASSERT_OK(WriteSome(
        NewNpzWriter(path, SomeParts(), {.first_64_bit = first_64_bit})));
    EXPECT_EQ(ReadBy(absl::StrCat("import json, numpy, sys, zipfile\n"
                                  "assert zipfile.ZipFile(sys.argv[1])"
                                  ".testzip() is None\n"
                                  "tensors = numpy.load(sys.argv[1])\n",
                                  kPrintAll),
                     path),
              InParts());
  }
}

TEST(RealLibrariesTest, SafetensorsReadsIt) {
  SKIP_WITHOUT("safetensors.numpy");
  const std::string path = ::testing::TempDir() + "/numpy.safetensors";
  ASSERT_OK(WriteSome(NewSafetensorsWriter(path, SomeParts())));
  EXPECT_EQ(ReadBy(absl::StrCat("import json, safetensors.numpy, sys\n"
                                "tensors = safetensors.numpy.load_file("
                                "sys.argv[1])\n",
                                kPrintAll),
                   path),
            InParts());
}

TEST(RealLibrariesTest, PyTorchReadsSafetensors) {
  SKIP_WITHOUT("torch, safetensors.torch");
  const std::string path = ::testing::TempDir() + "/torch.safetensors";
  ASSERT_OK(WriteSome(NewSafetensorsWriter(path, SomeParts())));
  EXPECT_EQ(ReadBy(absl::StrCat("import json, safetensors.torch, sys\n"
                                "tensors = safetensors.torch.load_file("
                                "sys.argv[1])\n",
                                kPrintAll),
                   path),
            InParts());
}

TEST(RealLibrariesTest, TensorFlowJoinsSlices) {
  SKIP_WITHOUT("tensorflow");
  const std::string prefix = ::testing::TempDir() + "/ckpt";
  ASSERT_OK(WriteSome(NewTensorBundleWriter(prefix, SomeParts())));
  EXPECT_EQ(ReadBy(absl::StrCat("import json, sys, tensorflow as tf\n"
                                "path = tf.train.latest_checkpoint("
                                "sys.argv[1].rpartition('/')[0])\n"
                                "r = tf.train.load_checkpoint(path)\n"
                                "tensors = {k: r.get_tensor(k) for k in "
                                "r.get_variable_to_shape_map()}\n",
                                kPrintAll),
                   prefix),
            json({{"dense/kernel", {{1, -2.5}, {0, 4}}},
                  {"ids", {7, -1, 9}},
                  {"global_step", 12}}));
}

}  // namespace
}  // namespace parasol
