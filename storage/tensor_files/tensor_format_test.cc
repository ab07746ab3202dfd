#include "storage/tensor_files/tensor_format.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/tensor_bundle.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

std::string PathOf(const std::string& name) {
  return absl::StrCat(::testing::TempDir(), "/format_", name);
}

TEST(TensorFormatTest, FilesThatAreNotReadSayHowTensorsGetOut) {
  const struct {
    std::string name;
    std::string hint;
  } cases[] = {{"model.onnx", "safetensors or npz"}, {"model.bin", "--format"}};
  for (const auto& [name, hint] : cases) {
    ASSERT_OK(WriteFileDurably(PathOf(name), ""));
    EXPECT_THAT(FormatOfFilesAt(PathOf(name)).status(),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(hint)));
  }
  EXPECT_THAT(FormatOfFilesAt(PathOf("none")).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no file or directory has this name")));
}

TEST(TensorFormatTest, SavedModelIsReadByItsDirectory) {
  const std::string directory = PathOf("saved/variables");
  ASSERT_OK(MakeDirectories(directory));
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<TensorWriter> writer,
      NewTensorBundleWriter(
          absl::StrCat(directory, "/variables"),
          {WholeTensor({"_all_variables/0", ElementType::kFloat32, {1}}),
           WholeTensor({"hidden/kernel", ElementType::kFloat32, {1}})}));
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(writer->Append(std::string(4, '\0')));
  }
  ASSERT_OK(writer->Finish());
  ASSERT_OK_AND_ASSIGN(const TensorFormat format,
                       FormatOfFilesAt(PathOf("saved")));
  EXPECT_EQ(format, TensorFormat::kTensorFlow);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<TensorReader> reader,
                       OpenTensors(format, PathOf("saved")));
  // The copies that Keras 3 writes are not listed.
  ASSERT_EQ(reader->tensors().size(), 1);
  EXPECT_EQ(reader->tensors()[0].name, "hidden/kernel");
}

}  // namespace
}  // namespace parasol
