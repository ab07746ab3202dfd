#include "tool/publish/state_delta.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "cluster/trust/sha256.h"
#include "storage/byte_order.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/safetensors_writer.h"
#include "storage/tensor_files/sized_file.h"
#include "storage/tensor_files/staged_file.h"
#include "tool/publish/zstd_frame.h"
#include "zlib.h"

namespace parasol {
namespace {

// Bytes of a tensor that are in memory at a time, of each state: whole elements
// of any type.
constexpr size_t kPieceBytes = 1 << 20;

// Calls `visit` with the tensor's pieces, in order: the first byte's place, the
// state's bytes and the base's.
using PieceVisit = absl::FunctionRef<absl::Status(
    uint64_t begin, absl::string_view state, absl::string_view base)>;

absl::Status VisitPieces(TensorReader& state, TensorReader* base, size_t tensor,
                         PieceVisit visit) {
  ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(state.tensors()[tensor]));
  std::string now;
  std::string before;
  for (uint64_t begin = 0; begin < bytes; begin += now.size()) {
    now.resize(std::min<uint64_t>(kPieceBytes, bytes - begin));
    RETURN_IF_ERROR(state.Read(tensor, begin, absl::MakeSpan(now)));
    if (base != nullptr) {
      before.resize(now.size());
      RETURN_IF_ERROR(base->Read(tensor, begin, absl::MakeSpan(before)));
    }
    RETURN_IF_ERROR(visit(begin, now, before));
  }
  return absl::OkStatus();
}

uint64_t CountDifferent(absl::string_view a, absl::string_view b) {
  uint64_t count = 0;
  for (size_t i = 0; i < b.size(); ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

absl::Status WriteXor(TensorReader& state, TensorReader& base, size_t tensor,
                      ZstdFrame& frame) {
  std::string different;
  return VisitPieces(
      state, &base, tensor,
      [&](uint64_t, absl::string_view now, absl::string_view before) {
        different.assign(now.data(), now.size());
        for (size_t i = 0; i < before.size(); ++i) different[i] ^= before[i];
        return frame.Add(different);
      });
}

absl::Status WriteOverwrite(TensorReader& state, TensorReader& base,
                            size_t tensor, uint64_t changed, ZstdFrame& frame) {
  std::string text;
  AppendLittleEndian(text, static_cast<uint32_t>(changed));
  RETURN_IF_ERROR(frame.Add(text));
  for (const bool is_places : {true, false}) {
    RETURN_IF_ERROR(VisitPieces(
        state, &base, tensor,
        [&](uint64_t begin, absl::string_view now, absl::string_view before) {
          text.clear();
          for (size_t i = 0; i < now.size(); ++i) {
            if (now[i] == before[i]) continue;
            if (is_places) {
              AppendLittleEndian(text, static_cast<uint32_t>(begin + i));
            } else {
              text.push_back(now[i]);
            }
          }
          return frame.Add(text);
        }));
  }
  return absl::OkStatus();
}

// Bytes that a tensor's frame holds.
uint64_t ContentBytes(VersionFormat format, uint64_t bytes, uint64_t changed) {
  return format == VersionFormat::kXor ? bytes : sizeof(uint32_t) + 5 * changed;
}

// Appends the frames of all tensors that differ, and returns their sizes; 0 for
// the others.
absl::StatusOr<std::vector<uint64_t>> WriteFrames(
    VersionFormat format, TensorReader& state, TensorReader& base,
    const StateComparison& comparison, StagedFile& file) {
  std::vector<uint64_t> sizes(comparison.tensors.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const uint64_t changed = comparison.changed[i];
    if (changed == 0) continue;
    const uint64_t begin = file.size();
    ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(state.tensors()[i]));
    ZstdFrame frame(ContentBytes(format, bytes, changed), file);
    RETURN_IF_ERROR(format == VersionFormat::kXor
                        ? WriteXor(state, base, i, frame)
                        : WriteOverwrite(state, base, i, changed, frame));
    RETURN_IF_ERROR(frame.Finish());
    sizes[i] = file.size() - begin;
  }
  return sizes;
}

// Copies frames to a safetensors file at `path`.
absl::Status CopyFrames(const std::string& frames_path,
                        const std::vector<uint64_t>& sizes,
                        const StateComparison& comparison,
                        const std::string& path) {
  std::vector<TensorPart> parts;
  std::map<std::string, std::string> metadata;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) continue;
    const std::string& name = comparison.tensors[i].info.name;
    parts.push_back(WholeTensor({.name = name,
                                 .type = ElementType::kUint8,
                                 .shape = {static_cast<int64_t>(sizes[i])}}));
    metadata[name] = absl::StrFormat("%08x", comparison.adler32[i]);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorWriter> writer,
                   NewSafetensorsWriter(path, std::move(parts), metadata));
  ASSIGN_OR_RETURN(const SizedFile frames, SizedFile::Open(frames_path));
  uint64_t begin = 0;
  for (const uint64_t size : sizes) {
    for (const uint64_t end = begin + size; begin < end;) {
      ASSIGN_OR_RETURN(
          const std::string bytes,
          frames.Read(begin, std::min<uint64_t>(kPieceBytes, end - begin)));
      RETURN_IF_ERROR(writer->Append(bytes));
      begin += bytes.size();
    }
  }
  return writer->Finish();
}

}  // namespace

absl::StatusOr<StateComparison> CompareStates(TensorReader& state,
                                              TensorReader* base) {
  StateComparison comparison;
  for (size_t i = 0; i < state.tensors().size(); ++i) {
    Sha256 sha256;
    Sha256 base_sha256;
    uint32_t adler = adler32(0, nullptr, 0);
    uint64_t changed = 0;
    RETURN_IF_ERROR(VisitPieces(
        state, base, i,
        [&](uint64_t, absl::string_view now, absl::string_view before) {
          sha256.Add(now);
          base_sha256.Add(before);
          adler = adler32(adler, reinterpret_cast<const Bytef*>(now.data()),
                          now.size());
          changed += CountDifferent(now, before);
          comparison.bytes += now.size();
          return absl::OkStatus();
        }));
    const TensorInfo& info = state.tensors()[i];
    comparison.tensors.push_back({.info = info, .sha256 = sha256.Finish()});
    if (base != nullptr) {
      comparison.base.push_back({.info = info, .sha256 = base_sha256.Finish()});
    }
    comparison.adler32.push_back(adler);
    comparison.changed.push_back(changed);
    comparison.changed_bytes += changed;
  }
  return comparison;
}

bool HaveSameTensors(const TensorReader& state, const TensorReader& base) {
  return state.tensors() == base.tensors();
}

bool IsWorthEncoding(VersionFormat format, const StateComparison& comparison) {
  if (format == VersionFormat::kFull) return false;
  if (format == VersionFormat::kXor) return true;
  return 5 * comparison.changed_bytes < comparison.bytes &&
         std::all_of(comparison.tensors.begin(), comparison.tensors.end(),
                     [](const PublishedTensor& tensor) {
                       const auto bytes = CountBytes(tensor.info);
                       return bytes.ok() && *bytes <= UINT32_MAX;
                     });
}

absl::Status WriteDelta(VersionFormat format, TensorReader& state,
                        TensorReader& base, const StateComparison& comparison,
                        const std::string& path) {
  const std::string frames_path = absl::StrCat(path, ".frames");
  ASSIGN_OR_RETURN(StagedFile frames, StagedFile::Create(frames_path));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes,
                   WriteFrames(format, state, base, comparison, frames));
  RETURN_IF_ERROR(frames.Commit());
  RETURN_IF_ERROR(CopyFrames(frames_path, sizes, comparison, path));
  return RemoveTree(frames_path);
}

}  // namespace parasol
