#include "tool/publish/testing/publisher_fixture.h"

#include <cstddef>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/safetensors_reader.h"

namespace parasol {

std::string TextOf(const std::string& path) {
  return ReadFile(path, size_t{1} << 30).value_or("");
}

std::map<std::string, std::string> TensorsAt(const std::string& path) {
  std::map<std::string, std::string> tensors;
  const auto reader = OpenSafetensors(path);
  EXPECT_OK(reader);
  if (!reader.ok()) return tensors;
  for (size_t i = 0; i < (*reader)->tensors().size(); ++i) {
    const TensorInfo& info = (*reader)->tensors()[i];
    std::string& bytes = tensors[info.name];
    bytes.resize(CountBytes(info).value_or(0));
    EXPECT_OK((*reader)->Read(i, 0, absl::MakeSpan(bytes)));
  }
  return tensors;
}

PublisherFixture::PublisherFixture()
    : root_(std::filesystem::canonical(EmptyTestDirectory())) {
  model_.step = 100;
  model_.shape = {2000, 4};
  model_.kernel.resize(8000);
  for (size_t i = 0; i < 8000; ++i) {
    model_.kernel[i] = 1 + 0.37f * static_cast<float>(i);
  }
  model_.m = model_.v = std::vector<float>(8000, 0);
}

std::string PublisherFixture::Out(const std::string& name) const {
  return absl::StrCat(root_, "/out", name.empty() ? "" : "/", name);
}

absl::StatusOr<Publication> PublisherFixture::PublishNext(Publisher& publisher,
                                                          int changed) {
  model_.step += 10;
  for (int i = 0; i < changed; ++i) {
    model_.kernel[(i * 7919 + model_.step) % 8000] *= 1.001f;
  }
  return Publish(publisher);
}

absl::StatusOr<Publication> PublisherFixture::Publish(Publisher& publisher) {
  std::filesystem::remove_all(model_.PathIn(root_ + "/ckpt"));
  RETURN_IF_ERROR(model_.Write(root_ + "/ckpt"));
  return publisher.Publish(model_.PathIn(root_ + "/ckpt"));
}

PublisherFixture::Received PublisherFixture::Receive() const {
  const std::string path = root_ + "/received.safetensors";
  std::filesystem::remove(path);
  const CompletedProcess run =
      RunPython(TextOf("docs/examples/receiver/receive.py"), {Out(), path});
  Received received = {.output = run.standard_output,
                       .errors = run.standard_error,
                       .code = run.end.code()};
  if (run.end.code() == 0) received.tensors = TensorsAt(path);
  return received;
}

std::string PublisherFixture::KernelBytes() const {
  return std::string(reinterpret_cast<const char*>(model_.kernel.data()),
                     model_.kernel.size() * sizeof(float));
}

}  // namespace parasol
