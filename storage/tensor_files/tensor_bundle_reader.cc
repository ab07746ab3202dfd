#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/sized_file.h"
#include "storage/tensor_files/slice_key.h"
#include "storage/tensor_files/sorted_table.h"
#include "storage/tensor_files/tensor_bundle.h"
#include "storage/tensor_files/varint.h"

namespace parasol {
namespace {

using ::parasol::tensor_bundle::BundleEntryProto;
using ::parasol::tensor_bundle::BundleHeaderProto;
using ::parasol::tensor_bundle::TrackableObjectGraph;

constexpr size_t kMaxIndexBytes = 256 << 20;
constexpr size_t kMaxStateBytes = 16 << 20;
// A SavedModel of Keras 3 has each variable under a second key.
constexpr absl::string_view kCopies = "_all_variables/";
// Shards of the largest jobs are some thousands.
constexpr int kMaxShards = 1 << 16;

ElementType TypeOf(int number) {
  for (const auto& [type, known] : kTensorFlowTypes) {
    if (known == number) return type;
  }
  return ElementType::kOther;
}

// A range of a data file: a tensor, or one of its slices.
struct Piece {
  int shard = 0;
  uint64_t offset = 0;
  uint64_t begin = 0;  // first byte, counted in the tensor
  uint64_t end = 0;
  uint32_t masked_crc = 0;
};

class TensorBundleReader : public TensorReader {
 public:
  explicit TensorBundleReader(std::string prefix)
      : prefix_(std::move(prefix)) {}

  absl::Status ReadIndex() {
    const std::string path = absl::StrCat(prefix_, ".index");
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxIndexBytes));
    ASSIGN_OR_RETURN(index_, DecodeSortedTable(bytes), _ << path);
    BundleHeaderProto header;
    if (!header.ParseFromString(index_[""]) || header.num_shards() < 1 ||
        header.num_shards() > kMaxShards || header.endianness() != 0) {
      return Damaged("its header is damaged, or it is not little-endian");
    }
    for (int i = 0; i < header.num_shards(); ++i) {
      ASSIGN_OR_RETURN(SizedFile file, SizedFile::Open(DataFileName(
                                           prefix_, i, header.num_shards())));
      files_.push_back(std::move(file));
    }
    ASSIGN_OR_RETURN(const auto names, FullNames());
    for (const auto& [key, value] : index_) {
      // Slices have keys that begin with a zero, and belong to others.
      if (key.empty() || key[0] == '\0' || key == kObjectGraphKey) continue;
      if (absl::StartsWith(key, kCopies)) continue;
      const auto name = names.find(key);
      RETURN_IF_ERROR(AddTensor(
          key, name == names.end()
                   ? std::string(absl::StripSuffix(key, kVariableValueSuffix))
                   : name->second));
    }
    return absl::OkStatus();
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    for (const Piece& piece : pieces_[tensor]) {
      if (first >= piece.end || first < piece.begin || out.empty()) continue;
      const auto part =
          out.first(std::min<uint64_t>(out.size(), piece.end - first));
      RETURN_IF_ERROR(
          files_[piece.shard].Read(piece.offset + (first - piece.begin), part));
      RETURN_IF_ERROR(CheckCrc(tensor, piece, first, part));
      first += part.size();
      out.remove_prefix(part.size());
    }
    if (out.empty()) return absl::OkStatus();
    return Damaged(absl::StrCat("tensor ", tensors_[tensor].name,
                                " has fewer bytes than were asked for"));
  }

 private:
  // A checksum over what was read in order.
  struct Progress {
    uint64_t next = 0;  // byte of the tensor
    uint32_t crc = 0;   // of the piece at hand
  };

  absl::Status Damaged(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat(prefix_, ".index: ", what));
  }

  absl::StatusOr<BundleEntryProto> EntryAt(const std::string& key) const {
    BundleEntryProto entry;
    const auto found = index_.find(key);
    if (found == index_.end() || !entry.ParseFromString(found->second) ||
        entry.shard_id() < 0 ||
        static_cast<size_t>(entry.shard_id()) >= files_.size() ||
        entry.offset() < 0 || entry.size() < 0) {
      return Damaged(absl::StrCat("the entry of ", absl::CHexEscape(key),
                                  " is missing or damaged"));
    }
    const SizedFile& file = files_[entry.shard_id()];
    const uint64_t offset = static_cast<uint64_t>(entry.offset());
    const uint64_t size = static_cast<uint64_t>(entry.size());
    if (offset <= file.size() && size <= file.size() - offset) return entry;
    return Damaged(absl::StrCat("the entry of ", absl::CHexEscape(key),
                                " lies outside of ", file.path()));
  }

  absl::Status AddTensor(const std::string& key, std::string name) {
    ASSIGN_OR_RETURN(const BundleEntryProto entry, EntryAt(key));
    TensorInfo info = {.name = std::move(name), .type = TypeOf(entry.dtype())};
    for (const auto& dim : entry.shape().dim()) {
      info.shape.push_back(dim.size());
    }
    ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(info),
                     _ << prefix_ << ".index");
    std::vector<Piece> pieces;
    if (entry.slices_size() == 0) {
      RETURN_IF_ERROR(AddPiece(info, entry, bytes, pieces));
    }
    for (const auto& slice : Sorted(entry)) {
      ASSIGN_OR_RETURN(const uint64_t piece, BytesOfSlice(info, slice));
      ASSIGN_OR_RETURN(const BundleEntryProto of_slice,
                       EntryAt(SliceKey(key, slice)));
      const uint64_t begin = pieces.empty() ? 0 : pieces.back().end;
      const uint64_t row = info.shape[0] == 0 ? 0 : bytes / info.shape[0];
      if (static_cast<uint64_t>(slice.extent(0).start()) * row != begin) {
        return Damaged(
            absl::StrCat("the slices of ", info.name, " have gaps or overlap"));
      }
      RETURN_IF_ERROR(AddPiece(info, of_slice, piece, pieces));
    }
    if (info.type != ElementType::kOther && pieces.back().end != bytes) {
      return Damaged(absl::StrCat("slices of ", info.name, " are missing"));
    }
    tensors_.push_back(std::move(info));
    pieces_.push_back(std::move(pieces));
    progress_.emplace_back();
    return absl::OkStatus();
  }

  absl::Status AddPiece(const TensorInfo& info, const BundleEntryProto& entry,
                        uint64_t bytes, std::vector<Piece>& pieces) const {
    if (info.type != ElementType::kOther &&
        static_cast<uint64_t>(entry.size()) != bytes) {
      return Damaged(absl::StrCat("tensor ", info.name, " has ", entry.size(),
                                  " bytes instead of ", bytes));
    }
    const uint64_t begin = pieces.empty() ? 0 : pieces.back().end;
    pieces.push_back({.shard = entry.shard_id(),
                      .offset = static_cast<uint64_t>(entry.offset()),
                      .begin = begin,
                      .end = begin + bytes,
                      .masked_crc = entry.crc32c()});
    return absl::OkStatus();
  }

  // The slices in ascending order of their first rows.
  static std::vector<tensor_bundle::TensorSliceProto> Sorted(
      const BundleEntryProto& entry) {
    std::vector<tensor_bundle::TensorSliceProto> slices(entry.slices().begin(),
                                                        entry.slices().end());
    const auto first_row = [](const tensor_bundle::TensorSliceProto& slice) {
      return slice.extent_size() == 0 ? 0 : slice.extent(0).start();
    };
    std::stable_sort(slices.begin(), slices.end(),
                     [&](const auto& a, const auto& b) {
                       return first_row(a) < first_row(b);
                     });
    return slices;
  }

  // The bytes of a slice, which must be some rows, whole.
  absl::StatusOr<uint64_t> BytesOfSlice(
      const TensorInfo& info,
      const tensor_bundle::TensorSliceProto& slice) const {
    if (info.shape.empty() ||
        slice.extent_size() != static_cast<int>(info.shape.size())) {
      return Damaged(absl::StrCat("a slice of ", info.name,
                                  " has another number of axes"));
    }
    TensorInfo part = info;
    for (int axis = 0; axis < slice.extent_size(); ++axis) {
      const auto& extent = slice.extent(axis);
      const int64_t size = info.shape[axis];
      part.shape[axis] = extent.length() > 0 ? extent.length() : size;
      if (extent.start() < 0 || part.shape[axis] > size ||
          extent.start() > size - part.shape[axis]) {
        return Damaged(
            absl::StrCat("a slice of ", info.name, " lies outside of it"));
      }
      if (axis > 0 && part.shape[axis] != size) {
        return absl::InvalidArgumentError(absl::StrCat(
            prefix_, ".index: ", info.name, " is cut along axis ", axis,
            "; only variables that are cut along axis 0 can be read"));
      }
    }
    return CountBytes(part);
  }

  absl::Status CheckCrc(size_t tensor, const Piece& piece, uint64_t first,
                        absl::Span<const char> bytes) {
    Progress& progress = progress_[tensor];
    if (first != progress.next) return absl::OkStatus();
    if (first == piece.begin) progress.crc = 0;
    progress.next += bytes.size();
    progress.crc = ExtendCrc32c(progress.crc,
                                absl::string_view(bytes.data(), bytes.size()));
    if (progress.next < piece.end ||
        MaskCrc(progress.crc) == piece.masked_crc) {
      return absl::OkStatus();
    }
    return absl::DataLossError(
        absl::StrCat(files_[piece.shard].path(), ": the checksum of tensor ",
                     tensors_[tensor].name, " is wrong"));
  }

  // The object graph; without nodes if the checkpoint has none.
  absl::StatusOr<TrackableObjectGraph> ReadGraph() const {
    TrackableObjectGraph graph;
    if (!index_.contains(std::string(kObjectGraphKey))) return graph;
    ASSIGN_OR_RETURN(const BundleEntryProto entry,
                     EntryAt(std::string(kObjectGraphKey)));
    ASSIGN_OR_RETURN(
        const std::string bytes,
        files_[entry.shard_id()].Read(entry.offset(), entry.size()));
    absl::string_view rest = bytes;
    const std::optional<uint64_t> length = TakeVarint(rest);
    constexpr size_t kCrcBytes = sizeof(uint32_t);
    if (!length || rest.size() < kCrcBytes ||
        rest.size() - kCrcBytes != *length ||
        !graph.ParseFromString(std::string(rest.substr(kCrcBytes)))) {
      return Damaged("the object graph is damaged");
    }
    return graph;
  }

  // The full names that belong to one key alone, by their keys.
  absl::StatusOr<std::map<std::string, std::string>> FullNames() const {
    ASSIGN_OR_RETURN(const TrackableObjectGraph graph, ReadGraph());
    std::map<std::string, std::set<std::string>> keys;
    for (const auto& node : graph.nodes()) {
      for (const auto& attribute : node.attributes()) {
        if (attribute.full_name().empty()) continue;
        if (absl::StartsWith(attribute.checkpoint_key(), kCopies)) continue;
        keys[attribute.full_name()].insert(attribute.checkpoint_key());
      }
    }
    std::map<std::string, std::string> names;
    for (const auto& [name, of_name] : keys) {
      if (of_name.size() == 1) names.emplace(*of_name.begin(), name);
    }
    return names;
  }

  const std::string prefix_;
  std::map<std::string, std::string> index_;
  std::vector<SizedFile> files_;
  std::vector<TensorInfo> tensors_;
  // In the order of `tensors_`.
  std::vector<std::vector<Piece>> pieces_;
  std::vector<Progress> progress_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorReader>> OpenTensorBundle(
    const std::string& prefix) {
  auto reader = std::make_unique<TensorBundleReader>(prefix);
  RETURN_IF_ERROR(reader->ReadIndex());
  return reader;
}

absl::StatusOr<std::string> NewestTensorBundle(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/checkpoint");
  ASSIGN_OR_RETURN(const std::string state, ReadFile(path, kMaxStateBytes));
  for (absl::string_view line : absl::StrSplit(state, '\n')) {
    if (!absl::ConsumePrefix(&line, "model_checkpoint_path:")) continue;
    line = absl::StripAsciiWhitespace(line);
    std::string name;
    if (absl::ConsumePrefix(&line, "\"") && absl::ConsumeSuffix(&line, "\"") &&
        absl::CUnescape(line, &name) && !name.empty()) {
      return (std::filesystem::path(directory) / name).string();
    }
  }
  return absl::DataLossError(
      absl::StrCat(path, ": has no model_checkpoint_path"));
}

}  // namespace parasol
