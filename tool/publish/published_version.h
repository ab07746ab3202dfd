#ifndef PARASOL_TOOL_PUBLISH_PUBLISHED_VERSION_H_
#define PARASOL_TOOL_PUBLISH_PUBLISHED_VERSION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/tensor_files/tensor.h"

namespace parasol {

// How a version has its tensors: whole, or as bytes that replace some of the
// base's, or as the bytes that differ XORed with the base's.
enum class VersionFormat { kFull, kOverwrite, kXor };

// A tensor of a version's state.
struct PublishedTensor {
  TensorInfo info = {};
  std::string sha256 = {};  // digest of its bytes, in hexadecimal digits
};

// A version as its manifest.json says it (docs/publishing.md).
struct PublishedVersion {
  int64_t version = 0;
  // The version that this one builds on, the one before; nullopt: it is whole.
  std::optional<int64_t> base = std::nullopt;
  VersionFormat format = VersionFormat::kFull;
  int64_t step = 0;
  std::string run_id = {};
  std::string job = {};
  // Type of the elements that are float32 in the checkpoint.
  ElementType type = ElementType::kFloat32;
  bool pytorch_layout = false;
  // Sizes of the other files of the version, by their names.
  std::map<std::string, uint64_t> files = {};
  // The state, in any order.
  std::vector<PublishedTensor> tensors = {};
  // StateDigest() of the base's tensors; empty without a base.
  std::string base_state = {};
};

// The names of a version's files.
inline constexpr absl::string_view kVersionManifest = "manifest.json";
inline constexpr absl::string_view kVersionIndex =
    "model.safetensors.index.json";
inline constexpr absl::string_view kVersionTensors =
    "model-00001-of-00001.safetensors";

// Returns the name of a version's directory, "weight_v000012", and the number
// that such a name has; nullopt for another name.
std::string VersionName(int64_t version);
std::optional<int64_t> VersionOfName(absl::string_view name);

// Returns "full", "overwrite" or "xor".
absl::string_view NameOf(VersionFormat format);

// Returns the SHA-256 of a state, whatever the order of its tensors: of one
// line for each, with its name, type, shape and SHA-256, in the order of the
// lines' bytes.
std::string StateDigest(const std::vector<PublishedTensor>& tensors);

// Returns the contents of manifest.json, and what such contents say. `path` is
// what messages name.
//   DataLoss  the contents are damaged, or of a later format.
std::string ManifestText(const PublishedVersion& version);
absl::StatusOr<PublishedVersion> ParseManifest(absl::string_view text,
                                               absl::string_view path);

// Returns the contents of model.safetensors.index.json, by which the tensors
// `names` lie in the version's file of tensors.
std::string IndexText(const PublishedVersion& version,
                      const std::vector<std::string>& names,
                      uint64_t state_bytes);

}  // namespace parasol

#endif  // PARASOL_TOOL_PUBLISH_PUBLISHED_VERSION_H_
