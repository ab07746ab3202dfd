#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/slice_key.h"
#include "storage/tensor_files/sorted_table.h"
#include "storage/tensor_files/staged_file.h"
#include "storage/tensor_files/tensor_bundle.h"
#include "storage/tensor_files/varint.h"

namespace parasol {
namespace {

using ::parasol::tensor_bundle::BundleEntryProto;
using ::parasol::tensor_bundle::BundleHeaderProto;

constexpr int kProducer = 1;  // version of the format

int TensorFlowType(ElementType type) {
  for (const auto& [known, number] : kTensorFlowTypes) {
    if (known == type) return number;
  }
  return 0;
}

BundleEntryProto EntryOf(const TensorInfo& tensor) {
  BundleEntryProto entry;
  entry.set_dtype(TensorFlowType(tensor.type));
  entry.mutable_shape();  // a scalar's is there, too
  for (const int64_t size : tensor.shape) {
    entry.mutable_shape()->add_dim()->set_size(size);
  }
  return entry;
}

tensor_bundle::TensorSliceProto SliceOf(const TensorPart& part) {
  tensor_bundle::TensorSliceProto slice;
  for (size_t axis = 0; axis < part.tensor.shape.size(); ++axis) {
    auto& extent = *slice.add_extent();
    extent.set_start(axis == 0 ? part.first_row : 0);
    extent.set_length(axis == 0 ? part.rows : part.tensor.shape[axis]);
  }
  return slice;
}

class TensorBundleWriter : public TensorWriter {
 public:
  TensorBundleWriter(std::string prefix, std::vector<TensorPart> parts,
                     StagedFile data)
      : TensorWriter(std::move(parts)),
        prefix_(std::move(prefix)),
        data_(std::move(data)) {
    BundleHeaderProto header;
    header.set_num_shards(1);
    header.mutable_version()->set_producer(kProducer);
    entries_[""] = header.SerializeAsString();
  }

  // A string tensor: its length as a varint, a checksum of the length, bytes.
  absl::Status WriteString(absl::string_view key, const std::string& text) {
    std::string length;
    AppendLittleEndian(length, static_cast<uint32_t>(text.size()));
    uint32_t crc = Crc32cOf(length);
    std::string masked;
    AppendLittleEndian(masked, MaskCrc(crc));
    crc = ExtendCrc32c(ExtendCrc32c(crc, masked), text);
    BundleEntryProto entry;
    entry.set_dtype(kTensorFlowString);
    entry.mutable_shape();
    entry.set_offset(static_cast<int64_t>(data_.size()));
    entry.set_crc32c(MaskCrc(crc));
    std::string bytes;
    AppendVarint(text.size(), bytes);
    absl::StrAppend(&bytes, masked, text);
    entry.set_size(static_cast<int64_t>(bytes.size()));
    entries_[std::string(key)] = entry.SerializeAsString();
    return data_.Append(bytes);
  }

 protected:
  absl::Status BeginPart(const TensorPart&) override {
    begin_ = data_.size();
    crc_ = 0;
    return absl::OkStatus();
  }

  absl::Status WriteElements(absl::string_view bytes) override {
    crc_ = ExtendCrc32c(crc_, bytes);
    return data_.Append(bytes);
  }

  absl::Status EndPart(const TensorPart& part) override {
    const std::string& name = part.tensor.name;
    BundleEntryProto entry = EntryOf(part.AsTensor());
    entry.set_offset(static_cast<int64_t>(begin_));
    entry.set_size(static_cast<int64_t>(data_.size() - begin_));
    entry.set_crc32c(MaskCrc(crc_));
    if (part.parts == 1) return AddEntry(name, entry);
    const tensor_bundle::TensorSliceProto slice = SliceOf(part);
    sliced_.emplace(name, EntryOf(part.tensor));
    *sliced_[name].add_slices() = slice;
    return AddEntry(SliceKey(name, slice), entry);
  }

  absl::Status Commit() override {
    for (const auto& [name, entry] : sliced_) {
      RETURN_IF_ERROR(AddEntry(name, entry));
    }
    RETURN_IF_ERROR(data_.Commit());
    RETURN_IF_ERROR(ReplaceFileDurably(absl::StrCat(prefix_, ".index"),
                                       EncodeSortedTable(entries_)));
    const std::filesystem::path prefix(prefix_);
    const std::string name = absl::CEscape(prefix.filename().string());
    return ReplaceFileDurably(
        (prefix.parent_path() / "checkpoint").string(),
        absl::StrFormat("model_checkpoint_path: \"%s\"\n"
                        "all_model_checkpoint_paths: \"%s\"\n",
                        name, name));
  }

 private:
  absl::Status AddEntry(const std::string& key, const BundleEntryProto& entry) {
    if (entries_.emplace(key, entry.SerializeAsString()).second) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("two tensors have the key ", absl::CHexEscape(key)));
  }

  const std::string prefix_;
  StagedFile data_;
  std::map<std::string, std::string> entries_;  // of the index
  std::map<std::string, BundleEntryProto> sliced_;
  // The part at hand.
  uint64_t begin_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace

std::string DataFileName(absl::string_view prefix, int shard, int shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, shards);
}

absl::StatusOr<std::unique_ptr<TensorWriter>> NewTensorBundleWriter(
    const std::string& prefix, std::vector<TensorPart> parts,
    const tensor_bundle::TrackableObjectGraph& graph) {
  ASSIGN_OR_RETURN(StagedFile data,
                   StagedFile::Create(DataFileName(prefix, 0, 1)));
  auto writer = std::make_unique<TensorBundleWriter>(prefix, std::move(parts),
                                                     std::move(data));
  if (graph.nodes_size() > 0) {
    RETURN_IF_ERROR(
        writer->WriteString(kObjectGraphKey, graph.SerializeAsString()));
  }
  return writer;
}

}  // namespace parasol
