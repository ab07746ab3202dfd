#include "tool/exchange/imported_shard.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/row_hash.h"
#include "base/status_macros.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/optimizer.h"
#include "storage/checkpoint_manifest.h"
#include "tool/checkpoint/checkpoint_values.h"
#include "tool/exchange/tensor_names.h"

namespace parasol {
namespace {

// Bytes of a table's rows in one entry, as a ps writes them.
constexpr size_t kRowEntryBytes = 16 << 10;
// Ids that are compared with each other at once: some 80 MB.
constexpr uint64_t kIdsOfAPass = 4 << 20;

// Indices of the entries in ascending order of their names.
template <typename Entry>
std::vector<size_t> ByName(const std::vector<Entry>& entries) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return entries[a].name() < entries[b].name();
  });
  return order;
}

// Elements of one tensor, or a constant in place of them, as float32.
class FloatSource {
 public:
  FloatSource(TensorReader& reader, std::optional<size_t> tensor,
              float constant)
      : reader_(reader), tensor_(tensor), constant_(constant) {}

  // Fills `out` with the elements from `first` on.
  absl::Status Read(uint64_t first, absl::Span<float> out) {
    if (!tensor_) {
      std::fill(out.begin(), out.end(), constant_);
      return absl::OkStatus();
    }
    const ElementType type = reader_.tensors()[*tensor_].type;
    bytes_.resize(out.size() * BytesOf(type));
    RETURN_IF_ERROR(
        reader_.Read(*tensor_, first * BytesOf(type), absl::MakeSpan(bytes_)));
    ToFloat32(type, bytes_, out);
    return absl::OkStatus();
  }

 private:
  TensorReader& reader_;
  const std::optional<size_t> tensor_;
  const float constant_;
  std::vector<char> bytes_;  // kept for its memory
};

absl::Status ReadIds(TensorReader& reader, size_t tensor, uint64_t first,
                     absl::Span<uint64_t> ids) {
  const ElementType type = reader.tensors()[tensor].type;
  std::vector<char> bytes(ids.size() * BytesOf(type));
  RETURN_IF_ERROR(
      reader.Read(tensor, first * BytesOf(type), absl::MakeSpan(bytes)));
  ToUint64(type, bytes, ids);
  return absl::OkStatus();
}

absl::Status WriteArray(const std::string& variable, int array,
                        uint64_t elements, int64_t updates, FloatSource source,
                        ShardWriter& writer) {
  std::vector<float> piece;
  for (uint64_t first = 0; first < elements; first += piece.size()) {
    piece.resize(std::min<uint64_t>(elements - first, kPieceElements));
    RETURN_IF_ERROR(source.Read(first, absl::MakeSpan(piece)));
    RETURN_IF_ERROR(writer.AddElements(
        variable, array, static_cast<int64_t>(first), updates, piece));
  }
  return absl::OkStatus();
}

absl::Status WriteVariable(TensorReader& reader,
                           const durable::CheckpointVariable& variable,
                           const ImportMatch::Variable& match,
                           const Optimizer& optimizer, int64_t updates,
                           ShardWriter& writer) {
  ASSIGN_OR_RETURN(const int64_t elements, ElementsOf(variable));
  RETURN_IF_ERROR(WriteArray(variable.name(), kValueArray, elements, updates,
                             FloatSource(reader, match.value, 0), writer));
  for (size_t slot = 0; slot < match.slots.size(); ++slot) {
    RETURN_IF_ERROR(WriteArray(variable.name(), 1 + static_cast<int>(slot),
                               elements, updates,
                               FloatSource(reader, match.slots[slot],
                                           optimizer.InitialSlotValue(slot)),
                               writer));
  }
  return absl::OkStatus();
}

// Reads the ids once for every kIdsOfAPass of them, and compares one part of
// them each time, so that memory is bounded.
absl::Status CheckDistinctIds(TensorReader& reader, size_t tensor,
                              const std::string& table) {
  const auto count = static_cast<uint64_t>(reader.tensors()[tensor].shape[0]);
  const uint64_t passes = (count + kIdsOfAPass - 1) / kIdsOfAPass;
  std::vector<uint64_t> ids;
  for (uint64_t pass = 0; pass < passes; ++pass) {
    absl::flat_hash_set<uint64_t> seen;
    for (uint64_t first = 0; first < count; first += ids.size()) {
      ids.resize(std::min<uint64_t>(count - first, kPieceElements));
      RETURN_IF_ERROR(ReadIds(reader, tensor, first, absl::MakeSpan(ids)));
      for (const uint64_t id : ids) {
        if (RowHash(id) % passes != pass || seen.insert(id).second) continue;
        return absl::DataLossError(
            absl::StrCat("tensor ", reader.tensors()[tensor].name, ": has id ",
                         id, " of table ", table, " twice"));
      }
    }
  }
  return absl::OkStatus();
}

// Copies each row's part of `values`, [rows, width], to where it belongs in
// `rows`, whose rows have `floats` elements.
void Scatter(absl::Span<const float> values, size_t width, size_t floats,
             float* rows) {
  for (size_t first = 0; first < values.size(); first += width) {
    std::copy_n(values.data() + first, width, rows + first / width * floats);
  }
}

absl::Status WriteTable(TensorReader& reader,
                        const durable::CheckpointTable& table,
                        const ImportMatch::Table& match,
                        const Optimizer& optimizer, int64_t updates,
                        ShardWriter& writer) {
  std::vector<FloatSource> sources = {FloatSource(reader, match.rows, 0)};
  std::vector<size_t> widths = {table.width()};
  for (size_t slot = 0; slot < match.slots.size(); ++slot) {
    sources.emplace_back(reader, match.slots[slot],
                         optimizer.InitialSlotValue(slot));
    widths.push_back(SlotWidthOf(table, static_cast<int>(slot)));
  }
  const size_t floats = FloatsOfRow(table);
  const uint64_t most = std::max<uint64_t>(
      1, kRowEntryBytes / (floats * sizeof(float) + sizeof(uint64_t)));
  const uint64_t count =
      static_cast<uint64_t>(reader.tensors()[match.ids].shape[0]);
  RETURN_IF_ERROR(CheckDistinctIds(reader, match.ids, table.name()));
  // A table without rows keeps its number of updates.
  RETURN_IF_ERROR(writer.AddRows(table.name(), {.updates = updates}));
  std::vector<uint64_t> ids;
  std::vector<float> values;
  std::vector<float> rows;
  for (uint64_t first = 0; first < count; first += ids.size()) {
    ids.resize(std::min(most, count - first));
    rows.resize(ids.size() * floats);
    RETURN_IF_ERROR(ReadIds(reader, match.ids, first, absl::MakeSpan(ids)));
    float* of_source = rows.data();
    for (size_t i = 0; i < sources.size(); ++i) {
      const size_t width = widths[i];
      values.resize(ids.size() * width);
      RETURN_IF_ERROR(sources[i].Read(first * width, absl::MakeSpan(values)));
      Scatter(values, width, floats, of_source);
      of_source += width;
    }
    RETURN_IF_ERROR(writer.AddRows(
        table.name(), {.updates = updates, .ids = ids, .rows = rows}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteImportedShard(TensorReader& reader, const ImportMatch& match,
                                const CheckpointContents& contents,
                                const job::Job& job, int64_t updates,
                                ShardWriter& writer) {
  for (const size_t i : ByName(contents.variables)) {
    ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> optimizer,
                     MakeVariableOptimizer(OptimizerOfVariable(
                         contents.variables[i].name(), job)));
    RETURN_IF_ERROR(WriteVariable(reader, contents.variables[i],
                                  match.variables[i], *optimizer, updates,
                                  writer));
  }
  for (const size_t i : ByName(contents.tables)) {
    const durable::CheckpointTable& table = contents.tables[i];
    ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> of_table,
                     MakeOptimizer(OptimizerOfTable(table.name(), job)));
    RETURN_IF_ERROR(
        WriteTable(reader, table, match.tables[i], *of_table, updates, writer));
  }
  return absl::OkStatus();
}

}  // namespace parasol
